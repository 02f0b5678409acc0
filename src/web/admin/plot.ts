/** Small plots, drawn with SVG elements. What they show is also said in words. */

const namespace = 'http://www.w3.org/2000/svg'
const width = 300
const height = 72

interface Plot {
  /** Says what the plot shows, for those who do not see it. */
  label: string
  values: readonly number[]
  kind: 'bars' | 'line'
  /** How many values fill the width; fewer stand at the right. */
  slots: number
}

export function plot({ label, values, kind, slots }: Plot): SVGSVGElement {
  const top = Math.max(1, ...values)
  const step = width / slots
  const left = width - values.length * step
  const y = (value: number) => height - 1 - (value / top) * (height - 6)
  const svg = draw('svg', {
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: 'none',
    class: 'plot',
    role: 'img',
    'aria-label': label,
  })
  svg.append(draw('line', { class: 'ground', x1: 0, x2: width, y1: height - 1, y2: height - 1 }))
  if (kind === 'bars') {
    const gap = Math.min(2, step / 4)
    svg.append(
      ...values.flatMap((value, index) =>
        value === 0
          ? []
          : [
              draw('rect', {
                x: left + index * step + gap / 2,
                y: y(value),
                width: step - gap,
                height: height - 1 - y(value),
              }),
            ],
      ),
    )
  } else if (values.length > 0) {
    const points = values.map((value, index) => `${left + (index + 0.5) * step},${y(value)}`)
    if (points.length === 1) points.unshift(`${left},${y(values[0] ?? 0)}`)
    svg.append(draw('polyline', { points: points.join(' ') }))
  }
  return svg as SVGSVGElement
}

function draw(name: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(namespace, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value))
  return element as SVGElement
}
