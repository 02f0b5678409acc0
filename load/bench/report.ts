/** The benchmark's findings for a terminal. */
import { table } from '../storm/page-text.ts'
import type { Section } from './sections.ts'
import { type Check, holds, told } from './targets.ts'

export function benchReport(sections: readonly Section[]): string {
  return sections.flatMap((section) => [...sectionLines(section), '']).join('\n')
}

function sectionLines({ title, results, pgbench, checks, remarks }: Section): string[] {
  const rows = results.map((each) => [
    each.name,
    rate(each.firsts),
    rate(each.requests),
    each.p50Ms.toFixed(1),
    each.p99Ms.toFixed(1),
    cpu(each.programCpu),
    cpu(each.postgresCpu),
    String(each.failures),
  ])
  return [
    title,
    ...table([
      ['', 'firsts/s', 'requests/s', 'p50 ms', 'p99 ms', 'process CPU s/1000', 'Postgres CPU s/1000', 'failures'],
      ...rows,
    ]),
    ...(pgbench === undefined
      ? []
      : [
          '',
          ...table([
            ['pgbench, Postgres alone', '1/s', 'Postgres CPU s/1000'],
            ...pgbench.map((each) => [each.name, rate(each.perSecond), cpu(each.postgresCpu)]),
          ]),
        ]),
    ...checks.map(checkLine),
    ...remarks.map((remark) => `  ${remark}`),
  ]
}

function checkLine(check: Check): string {
  const { what, value, bound, target } = check
  return `  ${holds(check) ? 'met   ' : 'MISSED'}  ${told(value)} ${what} (${bound} ${target})`
}

function rate(perSecond: number): string {
  return perSecond === 0 ? '-' : String(Math.round(perSecond))
}

function cpu(seconds: number | null): string {
  return seconds === null ? '-' : seconds.toFixed(3)
}
