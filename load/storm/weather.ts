/** The storm itself: shoppers, faults and trouble, and everything that is measured meanwhile. */
import { setFaults, setWebhooks } from '../support/simulator-control.ts'
import type { StormOptions } from './options.ts'
import type { Page } from './page.ts'
import { PostgresWatch } from './postgres-watch.ts'
import type { Shoppers } from './shoppers.ts'
import { shop } from './shopping.ts'
import type { Stage } from './stage.ts'
import type { Tally } from './tally.ts'
import { makeTrouble, ordinaryFaults } from './trouble.ts'
import { Upkeep } from './upkeep.ts'

/** Told what goes on; `line` replaces the last progress line. */
export interface Watcher {
  say(what: string): void
  line(text: string): void
}

/** Notifications on a bad day: late, twice, out of order, some never. */
const roughWebhooks = { delay_ms: 200, duplicates: 1, shuffle: true, drop: 0.05 }

type Weather = Pick<Page, 'seconds' | 'classes' | 'statuses' | 'timeline' | 'notes' | 'postgres' | 'upkeep'>

export async function letItStorm(
  options: StormOptions,
  stage: Stage,
  shoppers: Shoppers,
  tally: Tally,
  watcher: Watcher,
): Promise<Weather> {
  await setFaults(stage.simulatorUrl, ordinaryFaults(options), options.seed)
  await setWebhooks(stage.simulatorUrl, { ...roughWebhooks, seed: options.seed })
  const postgres = await PostgresWatch.start(() => stage.pool)
  const upkeep = new Upkeep(
    () => stage.pool,
    () => stage.own?.fleet.pids ?? new Map(),
  )
  const notes: Page['notes'] = []
  const note = (what: string) => {
    notes.push({ second: Math.round(tally.elapsedSeconds * 10) / 10, what })
    watcher.say(what)
  }
  const over = new AbortController()
  tally.start()
  const besides = Promise.all([
    makeTrouble(options, stage, note, over.signal),
    ...(options.scenario === 'soak' ? [upkeep.watch(over.signal)] : []),
  ])
  besides.catch(() => over.abort()) // told when the shopping is done
  const telling = setInterval(() => watcher.line(tally.progress()), 1000)
  let seconds = 0
  try {
    await shop({ ...options, urls: stage.urls }, shoppers)
    seconds = Math.round(tally.elapsedSeconds * 10) / 10
  } finally {
    clearInterval(telling)
    over.abort()
    await besides
  }
  const figures = {
    seconds,
    classes: tally.figures(seconds),
    statuses: tally.statuses,
    timeline: tally.timeline(),
    notes,
    upkeep: upkeep.samples,
  }
  return { ...figures, postgres: await postgres.stop() }
}
