/** What more load than one process carries does: to the service, to its readers and to the other shops. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Contestant, skus } from './contestants.ts'
import { drive, type Load, type Run } from './drive.ts'
import { type Cost, measured, warmUpSeconds } from './measured.ts'
import type { Result } from './race.ts'
import type { Bench, Section } from './sections.ts'
import { atLeast, atMost, ratio } from './targets.ts'
import { driveInThread } from './thread.ts'

/** Of the one crowd: far more than the attempts that a process takes at once. */
const crowdConnections = 1024
/** Times what the service carries. */
const surplus = 2
/** Of those who only look, requests a second. */
const lookRate = 50
/** A crowd takes a moment to gather, and its last answers come late: what is beside it begins later and ends earlier, s. */
const settlingSeconds = 2

/** Offered twice of what it carries: what is still sold, how fast the rest is refused, and whether readers notice. */
export async function overload(bench: Bench): Promise<Section> {
  const { contestants, connections, seconds } = bench
  const service = await contestants.service('service')
  const plateau = await atCapacity(bench, service, connections)
  const load = { connections: crowdConnections, seconds, rate: Math.round(plateau.firsts * surplus) }
  bench.say(`offering ${load.rate}/s`)
  const looks = { connections: 2, seconds, rate: lookRate }
  const [beyond, health, reads] = await Promise.all([
    named(
      `offered ${surplus} times that`,
      measured(bench.postgres, [service], () => drive(service.url, { skus }, around(load))),
    ),
    beside(() => driveInThread(service.url, { skus, read: '/readyz' }, looks)),
    beside(() => driveInThread(service.url, { skus, read: '/v1/products/bench_1' }, looks)),
  ])
  return {
    title: 'Overload: twice the load that it carries, from one shop',
    results: [
      plateau,
      beyond,
      { ...lookers, ...health, name: 'its /readyz' },
      { ...lookers, ...reads, name: 'its catalog' },
    ],
    checks: [
      atLeast('of the rate at capacity is still sold', 0.8, ratio(beyond.firsts, plateau.firsts)),
      atMost('failures other than 503', 0, beyond.failures + health.failures + reads.failures),
    ],
    remarks: [
      `${Math.round(beyond.refused)}/s are told 503 and when to come back, 99 % of them within ${beyond.refusedP99Ms.toFixed(0)} ms`,
    ],
  }
}

/** A shop with few customers beside one with a crowd. */
export async function fairness(bench: Bench): Promise<Section> {
  const { contestants, connections, seconds } = bench
  const service = await contestants.service('service')
  const small = { skus, storefrontKey: 'pk_test_other' }
  const few = { connections: 4, seconds }
  const plateau = await atCapacity(bench, service, connections)
  const alone = await named(
    'small shop alone',
    measured(bench.postgres, [service], () => driveInThread(service.url, small, few)),
  )
  const load = { connections: crowdConnections, seconds, rate: Math.round(plateau.firsts * surplus) }
  const [served, crowded] = await Promise.all([
    beside(() => driveInThread(service.url, small, few)),
    named(
      'the crowd',
      measured(bench.postgres, [service], () => drive(service.url, { skus }, around(load))),
    ),
  ])
  return {
    title: `Fairness: four customers of a small shop beside a crowd of ${crowdConnections} in another`,
    results: [alone, crowded, { ...lookers, ...served, name: 'small shop beside it' }],
    checks: [
      atMost("the small shop's p99, of the crowd's p50", 1, ratio(served.p99Ms, crowded.p50Ms)),
      atMost('refusals and failures in the small shop', 0, served.refused + served.failures),
    ],
    remarks: [],
  }
}

/** API processes on one Postgres, all on this machine. */
export async function processes(bench: Bench): Promise<Section> {
  const { contestants, connections, seconds } = bench
  const fleet = [await contestants.service('service')]
  const results: Result[] = []
  for (const count of [1, 2, 4]) {
    while (fleet.length < count) fleet.push(await contestants.oneMoreOf(fleet[0] as Contestant))
    const each = { connections: Math.round(connections / count), seconds }
    await Promise.all(fleet.map(({ url }) => drive(url, { skus }, { ...each, seconds: warmUpSeconds })))
    bench.say(`${count} processes`)
    const run = () => Promise.all(fleet.map(({ url }) => drive(url, { skus }, each))).then(together)
    results.push(await named(`${count} ${count === 1 ? 'process' : 'processes'}`, measured(bench.postgres, fleet, run)))
  }
  return { title: 'Processes: the same load on more of them', results, checks: [], remarks: [] }
}

function around(load: Required<Load>): Required<Load> {
  return { ...load, seconds: load.seconds + 2 * settlingSeconds }
}

async function beside(run: () => Promise<Run>): Promise<Run> {
  await delay(settlingSeconds * 1000)
  return run()
}

/** What is not known of those beside the load that is measured. */
const lookers: Cost = { programCpu: null, postgresCpu: null }

async function named(name: string, run: Promise<Run & Cost>): Promise<Result> {
  return { ...(await run), name }
}

async function atCapacity(bench: Bench, service: Contestant, connections: number): Promise<Result> {
  bench.say('at capacity')
  await drive(service.url, { skus }, { connections, seconds: warmUpSeconds })
  const load: Load = { connections, seconds: bench.seconds }
  return named(
    'at capacity',
    measured(bench.postgres, [service], () => drive(service.url, { skus }, load)),
  )
}

/** Of loads that ran at once: rates add up, and the slowest tells the percentiles. */
function together(runs: readonly Run[]): Run {
  const sum = (of: (run: Run) => number) => runs.reduce((total, run) => total + of(run), 0)
  const most = (of: (run: Run) => number) => Math.max(...runs.map(of))
  return {
    seconds: most((run) => run.seconds),
    requests: sum((run) => run.requests),
    firsts: sum((run) => run.firsts),
    p50Ms: most((run) => run.p50Ms),
    p99Ms: most((run) => run.p99Ms),
    refused: sum((run) => run.refused),
    refusedP99Ms: most((run) => run.refusedP99Ms),
    failures: sum((run) => run.failures),
  }
}
