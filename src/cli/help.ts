/** `--help` */
import type { Command } from './command.ts'

const common = [
  ['--json', 'the result as JSON on standard output'],
  ['-h, --help', 'this'],
] as const

export function overview(commands: readonly Command[]): string {
  return [
    'Usage: npm run --silent cli -- COMMAND [options]',
    '',
    ...columns(commands.map(({ name, about }) => [name, about])),
    '',
    'COMMAND --help tells more. Settings are environment variables, as for the service: DATABASE_URL names the database;',
    'without it, it is the embedded one in DATA_DIR. Results go to standard output, everything else to standard error.',
    '',
    'Exit code: 0 done, 1 it could not be done, 2 the command line is wrong; reconcile report: 3 something differs.',
    '',
  ].join('\n')
}

export function helpFor({ name, about, options, argument, notes = [] }: Command): string {
  const described = Object.entries(options).map(([option, { value, about, required }]): [string, string] => [
    `--${option}${value === undefined ? '' : ` ${value}`}`,
    required ? `${about} (required)` : about,
  ])
  return [
    `Usage: npm run --silent cli -- ${name}${argument === undefined ? '' : ` ${argument.name}`} [options]`,
    '',
    `${about.charAt(0).toUpperCase()}${about.slice(1)}.`,
    ...(notes.length === 0 ? [] : ['', ...notes]),
    '',
    ...columns([
      ...(argument === undefined ? [] : [[argument.name, argument.about] as const]),
      ...described,
      ...common,
    ]),
    '',
  ].join('\n')
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
