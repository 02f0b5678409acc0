/** The page as one self-contained HTML file. */
import { type Line, lineChart } from './chart.ts'
import { inHtml } from './in-html.ts'
import { classNames, isClean, type Page } from './page.ts'
import { pageAsText } from './page-text.ts'
import { classes } from './tally.ts'

const colours: Record<string, string> = {
  first: '#1b7f4b',
  replay: '#3f6fd1',
  wait: '#7aa6e8',
  unknown: '#d18b1b',
  conflict: '#8a5bb0',
  in_progress: '#b09b2f',
  expired: '#4f9d9d',
  refused: '#8b8b8b',
  unavailable: '#e0733d',
  error: '#c62828',
  unexpected: '#c2185b',
  lost: '#5d4037',
}

export function pageAsHtml(page: Page): string {
  const verdict = isClean(page.verdict) ? 'clean' : 'violated'
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${inHtml(page.scenario)}: ${verdict}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 960px; padding: 0 1rem; color: #1d1d1f; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.verdict { padding: .3rem .7rem; border-radius: 4px; color: #fff; background: ${verdict === 'clean' ? '#1b7f4b' : '#c62828'} }
pre { background: #f5f5f7; padding: 1rem; overflow-x: auto; font-size: 12px }
svg { width: 100%; height: auto } .legend span { margin-right: 1rem; white-space: nowrap }
</style></head><body>
<h1>${inHtml(page.scenario)} <span class="verdict">audit ${verdict}</span></h1>
<p>${inHtml(page.about)}. ${inHtml(page.startedAt)}.</p>
${charts(page)}
<h2>In numbers</h2>
<pre>${inHtml(pageAsText(page))}</pre>
</body></html>
`
}

function charts(page: Page): string {
  if (page.timeline.length === 0) return ''
  const marks = page.notes.map(({ second, what }) => ({ at: second, what }))
  const used = classes.filter((each) => page.classes.some((figures) => figures.class === each))
  const answers = used.map((each) => ({
    name: classNames[each],
    colour: colours[each] ?? '#000',
    points: page.timeline.map(({ second, counts }): [number, number] => [second, counts[each] ?? 0]),
  }))
  const latency: Line[] = [
    { name: 'p99', colour: '#c62828', points: page.timeline.map(({ second, p99Ms }) => [second, p99Ms]) },
    { name: 'p50', colour: '#1b7f4b', points: page.timeline.map(({ second, p50Ms }) => [second, p50Ms]) },
  ]
  return [
    section('Answers a second', answers, marks),
    section('Latency of first attempts, ms', latency, marks),
    ...(page.upkeep.length < 2 ? [] : upkeepCharts(page)),
    marks.length === 0
      ? ''
      : `<p>${marks.map(({ at, what }) => `${at.toFixed(1)} s: ${inHtml(what)}`).join('<br>')}</p>`,
  ].join('\n')
}

function upkeepCharts({ upkeep }: Page): string[] {
  const palette = Object.values(colours)
  const lines = (of: 'memory' | 'tables') =>
    Object.keys(upkeep.at(-1)?.[of] ?? {}).map((name, at) => ({
      name,
      colour: palette[at % palette.length] ?? '#000',
      points: upkeep.map((sample): [number, number] => [sample.second, sample[of][name] ?? 0]),
    }))
  return [
    section('Memory of the processes, MB', lines('memory'), []),
    section('Tables with indexes, MB', lines('tables'), []),
  ]
}

function section(title: string, lines: Line[], marks: { at: number; what: string }[]): string {
  const legend = lines.map(({ name, colour }) => `<span style="color:${colour}">■ ${inHtml(name)}</span>`).join('')
  return `<h2>${inHtml(title)}</h2>${lineChart(lines, marks)}<p class="legend">${legend}</p>`
}
