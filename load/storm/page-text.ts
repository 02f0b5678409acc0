/** The page for a terminal. */
import { classNames, isClean, type Page } from './page.ts'

export function pageAsText(page: Page): string {
  return [
    `${page.scenario}: ${page.about}`,
    Object.entries(page.given)
      .map(([name, value]) => `${name} ${value}`)
      .join(', '),
    '',
    ...(page.classes.length > 0 ? [...loadLines(page), ''] : []),
    ...(page.postgres === null ? [] : [...postgresLines(page.postgres), '']),
    ...(page.calm === null ? [] : [...calmLines(page, page.calm), '']),
    ...verdictLines(page),
  ].join('\n')
}

function loadLines(page: Page): string[] {
  const head = ['', 'count', '1/s', 'p50 ms', 'p90 ms', 'p99 ms', 'max ms']
  const rows = page.classes.map((each) => [
    classNames[each.class],
    ...[each.count, each.perSecond, each.p50Ms, each.p90Ms, each.p99Ms, each.maxMs].map(String),
  ])
  const answers = Object.entries(page.statuses).map(([what, count]) => `${what}: ${count}`)
  return [...table([head, ...rows]), '', `answers in ${page.seconds} s   ${answers.join('   ')}`]
}

function postgresLines(postgres: NonNullable<Page['postgres']>): string[] {
  const waits = Object.entries(postgres.waits).map(([wait, sessions]) => `${wait} ${sessions}`)
  return [
    `Postgres   ${postgres.commits} commits, ${postgres.rollbacks} rollbacks, ${postgres.deadlocks} deadlocks` +
      (postgres.incomplete ? ' (incomplete: it was away)' : ''),
    `sessions waiting, on average of ${postgres.samples} samples   ${waits.join('   ') || 'none'}`,
    ...table([
      ['statement', 'calls', 'total ms', 'mean ms'],
      ...postgres.statements.map(({ statement, calls, totalMs, meanMs }) => [
        statement.slice(0, 70),
        ...[calls, totalMs, meanMs].map(String),
      ]),
    ]),
  ]
}

function calmLines(page: Page, calm: NonNullable<Page['calm']>): string[] {
  const orders = Object.entries(page.orders).map(([status, count]) => `${status} ${count}`)
  return [
    `after the storm   ${page.cameBack} shoppers asked once more; recovery was done after ${calm.seconds} s` +
      (calm.open > 0 ? `, ${calm.open} orders were still open` : '') +
      (calm.cutShort > 0 ? `; the wait for ${calm.cutShort} charges that never arrived was cut short` : ''),
    `orders   ${orders.join('   ')}`,
  ]
}

function verdictLines({ verdict }: Page): string[] {
  if (isClean(verdict)) return ['audit: clean. Every order, ledger line and unit of stock agrees with the provider.']
  return [
    'AUDIT: VIOLATED',
    ...verdict.findings.map((each) => `  ${each.severity}: ${each.rule}: ${each.subject}: ${each.detail}`),
    ...verdict.contradictions.map(({ key, detail }) => `  wrong: one key, one answer: ${key}: ${detail}`),
    ...verdict.grown.map((what) => `  not flat: ${what}`),
    ...verdict.histories.flatMap(({ key, orderId, lines }) => [
      '',
      `history of key ${key}${orderId === null ? '' : `, order ${orderId}`}`,
      ...lines.map((line) => `  ${line}`),
    ]),
  ]
}

/** Columns as wide as their widest cell; the first to the left, numbers to the right. */
export function table(rows: string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  '),
  )
}
