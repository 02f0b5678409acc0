/** What is compared with what, and what is asked of it. */
import { administer, type LoadPostgres } from '../support/postgres.ts'
import { type Contestant, type Contestants, hotSku, skus } from './contestants.ts'
import { fairness, overload, processes } from './crowds.ts'
import { drive, settleKeys } from './drive.ts'
import { type PgbenchResult, pgbench } from './pgbench.ts'
import { type Entry, type Result, race } from './race.ts'
import { atLeast, atMost, type Check, ratio, told } from './targets.ts'

export interface BenchOptions {
  rounds: number
  /** Of each turn. */
  seconds: number
  connections: number
  agedKeys: number
}

export interface Section {
  title: string
  results: Result[]
  pgbench?: PgbenchResult[]
  checks: Check[]
  /** What else there is to say. */
  remarks: string[]
}

export interface Bench extends BenchOptions {
  contestants: Contestants
  postgres: LoadPostgres
  say(what: string): void
}

export const sectionNames = [
  'first',
  'replay',
  'storm',
  'stampede',
  'flash-sale',
  'overload',
  'fairness',
  'processes',
  'sdk',
  'aged',
] as const

export const sections: Record<(typeof sectionNames)[number], (bench: Bench) => Promise<Section>> = {
  first: firstAttempts,
  replay: replays,
  storm: repeatsAmong,
  stampede,
  'flash-sale': flashSale,
  overload,
  fairness,
  processes,
  sdk: throughSdk,
  aged,
}

async function firstAttempts(bench: Bench): Promise<Section> {
  const { contestants, connections } = bench
  const all = [await contestants.service('service'), await contestants.baseline(), await contestants.floor()]
  const entries = [connections, connections * 2].flatMap((count) =>
    all.map(
      (contestant): Entry => ({
        name: `${contestant.name}, ${count} connections`,
        contestant,
        shape: { skus },
        connections: count,
      }),
    ),
  )
  const results = await race(entries, bench)
  // Each at its best: how many it takes to fill the cores is its own.
  const [service, baseline, floor] = all.map((contestant) =>
    results
      .filter((_, at) => entries[at]?.contestant === contestant)
      .reduce((best, result) => (result.firsts > best.firsts ? result : best)),
  )
  bench.say('pgbench')
  const alone = await pgbench(bench.postgres, await contestants.emptyDatabase('pgbench'), bench.seconds)
  return {
    title: 'First attempts',
    results,
    ...(alone === null ? {} : { pgbench: alone }),
    checks: [
      atLeast("times the baseline's throughput", 6, ratio(service?.firsts, baseline?.firsts)),
      atLeast('of the bare batched saga', 0.6, ratio(service?.firsts, floor?.firsts)),
      atMost("p99, of the baseline's", 1, ratio(service?.p99Ms, baseline?.p99Ms)),
      atMost('CPU seconds of service and Postgres per 1000', 0.3, cpuOf(service)),
    ],
    remarks: [
      ...(alone === null ? ['pgbench is not installed: what Postgres alone carries is left out'] : []),
      `${told(ratio(cpuOf(service), cpuOf(floor)))} times the CPU seconds of the bare batched saga, ` +
        `${told(ratio(cpuOf(service), cpuOf(baseline)))} of the baseline's`,
    ],
  }
}

async function replays(bench: Bench): Promise<Section> {
  const { contestants, connections } = bench
  const service = await contestants.service('service')
  const keys = await settleKeys(service.url, skus, 100)
  const results = await race(
    [service, await contestants.bareRoute()].map(
      (contestant): Entry => ({ name: contestant.name, contestant, shape: { skus, keys }, connections }),
    ),
    bench,
  )
  const [replay, bare] = results
  return {
    title: 'Replays of settled attempts',
    results,
    checks: [atLeast('of a bare Fastify route', 0.6, ratio(replay?.requests, bare?.requests))],
    remarks: [],
  }
}

async function repeatsAmong(bench: Bench): Promise<Section> {
  const contestant = await bench.contestants.service('service')
  const { connections } = bench
  const results = await race(
    [
      { name: 'no repeats', contestant, shape: { skus }, connections },
      { name: '10 % repeats', contestant, shape: { skus, repeats: 0.1 }, connections },
    ],
    bench,
  )
  const [without, withRepeats] = results
  return {
    title: 'Storm: first attempts while one request in ten re-posts an earlier key',
    results,
    checks: [atMost('p99 of first attempts, of that without repeats', 1.3, ratio(withRepeats?.p99Ms, without?.p99Ms))],
    remarks: [],
  }
}

async function stampede(bench: Bench): Promise<Section> {
  const { contestants, connections } = bench
  const service = await contestants.service('service')
  const behindSlow = await contestants.service('slow', { providerDelayMs: slowProviderMs })
  // As many first attempts at once, each with its nine twins.
  const pair = (contestant: Contestant, name: string): Entry[] => [
    { name: `alone${name}`, contestant, shape: { skus }, connections },
    { name: `with 9 twins${name}`, contestant, shape: { skus, twins: 9 }, connections: connections * 10 },
  ]
  const results = await race([...pair(service, ''), ...pair(behindSlow, `, provider ${slowProviderMs} ms`)], bench)
  const [alone, twins, slowAlone, slowTwins] = results
  return {
    title: 'Stampede: every new key arrives ten times at once',
    results,
    checks: [atLeast('of the first attempts a second', 0.8, ratio(twins?.firsts, alone?.firsts))],
    remarks: [
      `${told(ratio(slowTwins?.firsts, slowAlone?.firsts))} of them where the provider takes ${slowProviderMs} ms`,
      'the twins are requests too: both server and load generator carry ten times as many',
    ],
  }
}

/** As a card network takes at its best. */
const slowProviderMs = 100

async function flashSale(bench: Bench): Promise<Section> {
  const { contestants, connections, seconds } = bench
  const contestant = await contestants.service('service')
  const results = await race(
    [
      { name: '100 SKUs', contestant, shape: { skus }, connections },
      { name: 'one SKU', contestant, shape: { skus: [hotSku] }, connections },
    ],
    bench,
  )
  const [spread, hot] = results
  bench.say('selling the last units')
  const oversold = await sellOut(contestant, Math.min(seconds, 3), connections)
  return {
    title: 'Flash sale: everybody wants one SKU',
    results,
    checks: [
      atLeast('of the spread-out rate', 0.8, ratio(hot?.firsts, spread?.firsts)),
      atMost('units sold beyond the last one', 0, oversold),
    ],
    remarks: [],
  }
}

/** Offers a few units to many; resolves with how many more were sold, negative where some were left. */
async function sellOut({ url, databaseUrl }: Contestant, seconds: number, connections: number): Promise<number> {
  const units = 200
  const sold = async () => {
    const { rows } = await administer(
      databaseUrl,
      `SELECT count(*)::integer AS sold FROM stock_movements WHERE sku = '${hotSku}' AND kind = 'reserve'`,
    )
    return (rows[0] as { sold: number }).sold
  }
  const before = await sold()
  await administer(databaseUrl, `UPDATE products SET available = ${units} WHERE sku = '${hotSku}'`)
  await drive(url, { skus: [hotSku] }, { connections, seconds })
  return (await sold()) - before - units
}

async function aged(bench: Bench): Promise<Section> {
  const { contestants, connections, agedKeys } = bench
  const young = await contestants.service('empty')
  bench.say(`storing ${agedKeys} keys`)
  const old = await contestants.service('aged', { agedKeys })
  const results = await race(
    [
      { name: 'empty tables', contestant: young, shape: { skus }, connections },
      { name: `${agedKeys} stored keys`, contestant: old, shape: { skus }, connections },
    ],
    bench,
  )
  const [empty, full] = results
  return {
    title: 'Aged: first attempts beside many stored keys',
    results,
    checks: [atLeast('of the rate on empty tables', 0.95, ratio(full?.firsts, empty?.firsts))],
    remarks: [],
  }
}

async function throughSdk(bench: Bench): Promise<Section> {
  const { contestants, connections } = bench
  const results = await race(
    [
      { name: 'instant provider', contestant: await contestants.service('service'), shape: { skus }, connections },
      {
        name: 'SDK and simulator',
        contestant: await contestants.serviceThroughSdk('sdk'),
        shape: { skus },
        connections,
      },
    ],
    bench,
  )
  const [instant, sdk] = results
  const own = instant?.programCpu ?? null
  const all = sdk?.programCpu ?? null
  return {
    title: "Through the provider's SDK to the simulator",
    results,
    checks: [],
    remarks:
      own === null || all === null
        ? ["how much is the SDK's is not known: /proc is missing"]
        : [
            `the SDK and its HTTP take ${(all - own).toFixed(3)} CPU seconds per 1000 checkouts, ` +
              `${Math.round(((all - own) / all) * 100)} % of the service's process`,
          ],
  }
}

function cpuOf(result: Result | undefined): number | null {
  if (result?.programCpu == null || result.postgresCpu === null) return null
  return result.programCpu + result.postgresCpu
}
