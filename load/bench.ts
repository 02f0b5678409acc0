/** `npm run bench`: what a checkout costs, beside what it could cost at least and what it costs when written in an
 * afternoon. With `--check` exits 1 where a target is missed. */
import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { Contestants } from './bench/contestants.ts'
import { benchReport } from './bench/report.ts'
import { type BenchOptions, type Section, sectionNames, sections } from './bench/sections.ts'
import { holds } from './bench/targets.ts'
import { exitOnSignals, runFolder } from './support/folder.ts'
import { startLoadPostgres } from './support/postgres.ts'

const usage = `npm run bench -- [flags]

  --only NAME,…      of ${sectionNames.join(', ')} (all)
  --rounds N         how often each takes its turn (5)
  --seconds S        length of one turn (8)
  --connections N    (64); "first" also with twice as many
  --aged-keys N      stored before "aged" (10000000)
  --check            exit 1 where a target is missed
  --json FILE`

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '8' },
    connections: { type: 'string', default: '64' },
    'aged-keys': { type: 'string', default: '10000000' },
    check: { type: 'boolean', default: false },
    json: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

/** Throws with the flag's name where it is no number above 0. */
function count(flag: 'rounds' | 'seconds' | 'connections' | 'aged-keys'): number {
  const number = Number(values[flag])
  if (!(number > 0)) throw new Error(`--${flag} must be a number above 0, not "${values[flag]}"`)
  return number
}

exitOnSignals()
if (values.help) {
  console.log(usage)
} else {
  const results = await bench(
    values.only === undefined ? sectionNames : sectionNames.filter((name) => values.only?.split(',').includes(name)),
    {
      rounds: count('rounds'),
      seconds: count('seconds'),
      connections: count('connections'),
      agedKeys: count('aged-keys'),
    },
  )
  console.log(benchReport(results))
  if (values.json !== undefined) {
    const machine = { processors: cpus().length, model: cpus()[0]?.model, node: process.version }
    await writeFile(values.json, `${JSON.stringify({ at: new Date(), machine, results }, null, 2)}\n`)
  }
  if (values.check && !results.every(({ checks }) => checks.every(holds))) process.exitCode = 1
}

async function bench(names: readonly (typeof sectionNames)[number][], options: BenchOptions): Promise<Section[]> {
  const folder = await runFolder('checkout-bench')
  const postgres = await startLoadPostgres(folder.path)
  const say = (what: string) => process.stderr.write(`${what}\n`)
  try {
    const results: Section[] = []
    for (const name of names) {
      // Each section's own: what the others stored or left to vacuum is not its concern.
      const contestants = new Contestants(postgres, folder.logs, name)
      try {
        results.push(
          await sections[name]({ ...options, contestants, postgres, say: (what) => say(`${name}: ${what}`) }),
        )
      } finally {
        await contestants.stop()
      }
    }
    return results
  } finally {
    await postgres.stop()
  }
}
