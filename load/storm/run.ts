/** A storm from its first request to its verdict. */
import { setFaults, setWebhooks } from '../support/simulator-control.ts'
import { removeAgedKeys, storeAgedKeys } from './aging.ts'
import { historiesOf } from './histories.ts'
import { judge, judgeWhenFinished, orderCounts, untilCalm } from './judgement.ts'
import type { StormOptions } from './options.ts'
import { isClean, type Page, type Verdict } from './page.ts'
import { scenarios } from './scenarios.ts'
import { stockShelves } from './shelves.ts'
import { type Post, Shoppers } from './shoppers.ts'
import { postOnce } from './shopping.ts'
import { openStage, type Stage } from './stage.ts'
import { Tally } from './tally.ts'
import { growth } from './upkeep.ts'
import { letItStorm, type Watcher } from './weather.ts'

export async function runStorm(options: StormOptions, watcher: Watcher): Promise<Page> {
  watcher.say(options.running === undefined ? 'starting Postgres, the simulator and the service' : 'connecting')
  const stage = await openStage(options)
  try {
    const page = options.auditOnly ? await onlyJudge(options, stage) : await storm(options, stage, watcher)
    if (stage.own !== undefined && !isClean(page.verdict)) {
      stage.own.folder.keep()
      watcher.say(`logs and data stay in ${stage.own.folder.path}`)
    }
    return page
  } finally {
    await stage.stop()
  }
}

async function storm(options: StormOptions, stage: Stage, watcher: Watcher): Promise<Page> {
  const { tenantId, storefrontKey } = options
  const url = stage.urls[0] ?? ''
  const stock = await stockShelves(options, url)
  const [hot = '', ...others] = Object.keys(stock)
  const tally = new Tally()
  const shoppers = new Shoppers(options, { hot, others }, tally)
  await storeAgedKeys(stage.pool, tenantId, options.agedKeys, (stored) => watcher.line(`${stored} keys stored`))

  const weather = await letItStorm(options, stage, shoppers, tally, watcher)

  watcher.say('faults off; the shoppers come back, recovery runs')
  await setFaults(stage.simulatorUrl, [])
  await setWebhooks(stage.simulatorUrl)
  if (options.agedKeys > 0) await removeAgedKeys(stage.pool)
  const comeBack = async () => {
    const unresolved = shoppers.unresolved()
    await shoppers.comeBack((post: Post) => postOnce(post, shoppers, url, storefrontKey), unresolved)
    return unresolved.length
  }
  const cameBack = await comeBack()
  const calm = await untilCalm(stage.pool, tenantId, {
    limitSeconds: options.recoverySeconds,
    mayCutShort: stage.own !== undefined,
    onOpen: (open) => watcher.line(`${open} orders open`),
  })
  // Now every key has its answer for good.
  await comeBack()

  watcher.say('the audit reads the books')
  const verdict: Verdict = {
    findings: await judgeWhenFinished(
      () => judge(stage.pool, stage.simulatorUrl, tenantId, stock),
      findingsPatienceSeconds,
    ),
    contradictions: [
      ...shoppers.contradictions,
      ...shoppers.unresolved().map(({ key }) => ({ key, detail: 'no definite answer, although recovery is done' })),
    ],
    grown: growth(weather.upkeep),
    histories: [],
  }
  return {
    ...heading(options, givenBy(options)),
    ...weather,
    calm,
    cameBack,
    orders: await orderCounts(stage.pool, tenantId),
    verdict: { ...verdict, histories: await historiesOf(verdict, stage, tenantId, shoppers.attempts) },
  }
}

/** What a notification under way still brings. */
const findingsPatienceSeconds = 20

async function onlyJudge(options: StormOptions, stage: Stage): Promise<Page> {
  const { tenantId } = options
  const findings = await judge(stage.pool, stage.simulatorUrl, tenantId, {})
  const verdict: Verdict = { findings, contradictions: [], grown: [], histories: [] }
  return {
    ...heading(options, { tenant: tenantId }),
    scenario: 'audit',
    about: 'the books of a service, without a storm',
    seconds: 0,
    classes: [],
    statuses: {},
    timeline: [],
    notes: [],
    postgres: null,
    upkeep: [],
    calm: null,
    cameBack: 0,
    orders: await orderCounts(stage.pool, tenantId),
    verdict: { ...verdict, histories: await historiesOf(verdict, stage, tenantId, new Map()) },
  }
}

function heading(
  options: StormOptions,
  given: Page['given'],
): Pick<Page, 'scenario' | 'about' | 'startedAt' | 'given'> {
  const { scenario } = options
  return { scenario, about: scenarios[scenario].about, startedAt: new Date().toISOString(), given }
}

function givenBy(options: StormOptions): Page['given'] {
  const { connections, durationSeconds, repeats, twins, units, processes, workers, seed, rate } = options
  return {
    connections,
    seconds: durationSeconds,
    ...(rate === undefined ? {} : { 'requests a second': rate }),
    repeats,
    twins,
    latency: options.latency.map(({ ms, share }) => `${ms}:${share}`).join(' ') || 'none',
    faults: options.faults.map(({ fault, share }) => `${fault}:${share}`).join(' ') || 'none',
    'hot SKU': `${options.hotShare} of carts${units < 1_000_000 ? `, ${units} units` : ''}`,
    ...(options.running === undefined ? { processes, workers } : {}),
    ...(options.agedKeys > 0 ? { 'aged keys': options.agedKeys } : {}),
    seed,
  }
}
