/** Lines over time as SVG. */
import { inHtml } from './in-html.ts'

export interface Line {
  name: string
  colour: string
  /** [s, value], in order. */
  points: [number, number][]
}

const width = 900
const height = 220
const margin = { left: 60, right: 10, top: 10, bottom: 24 }

/** `marks`: moments, as vertical lines that tell what happened when pointed at. */
export function lineChart(lines: readonly Line[], marks: readonly { at: number; what: string }[]): string {
  const points = lines.flatMap((line) => line.points)
  const lastSecond = Math.max(1, ...points.map(([second]) => second))
  const top = niceTop(Math.max(1, ...points.map(([, value]) => value)))
  const x = (second: number) => round(margin.left + (second / lastSecond) * (width - margin.left - margin.right))
  const y = (value: number) => round(height - margin.bottom - (value / top) * (height - margin.top - margin.bottom))
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const value = top * share
    return `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(value)}" y2="${y(value)}" stroke="#e3e3e6"/><text x="${margin.left - 6}" y="${y(value) + 4}" text-anchor="end">${round(value)}</text>`
  })
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const second = lastSecond * share
    return `<text x="${x(second)}" y="${height - 6}" text-anchor="middle">${Math.round(second)} s</text>`
  })
  const moments = marks.map(
    ({ at, what }) =>
      `<line x1="${x(at)}" x2="${x(at)}" y1="${margin.top}" y2="${height - margin.bottom}" stroke="#999" stroke-dasharray="3 3"><title>${inHtml(what)}</title></line>`,
  )
  const drawn = lines.map(
    ({ colour, points: own }) =>
      `<polyline fill="none" stroke="${colour}" stroke-width="1.5" points="${own.map(([s, v]) => `${x(s)},${y(v)}`).join(' ')}"/>`,
  )
  return `<svg viewBox="0 0 ${width} ${height}" font-size="11" fill="#555">${[...grid, ...ticks, ...moments, ...drawn].join('')}</svg>`
}

/** The next 1, 2 or 5 times a power of ten. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
