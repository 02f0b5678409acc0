/** Workers that are killed in the middle of applying what the provider notifies, and the one that goes on. */
import { runJobs } from '../../src/workers/run-jobs.ts'
import { putOffAsking, strandAndKill, takeOver } from '../support/deaths.ts'
import { type Audience, type Effects, startAudience } from '../support/effects.ts'
import { type Placed, unhurried } from '../support/money-back.ts'
import { deliver, deliverAgain, type Notification, notificationsOf } from '../support/notifications.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

export interface NewsCase {
  points: string[]
  /** What has happened at the provider, and nobody has told us of. */
  happen(scene: Scene): Promise<Placed>
  /** The news of it: the provider's own of this type, or one made for the purpose. */
  news: string | ((scene: Scene, order: Placed) => Promise<Notification>)
  effects: Effects
}

export interface Doomed {
  what: string
  point: string
  how: NewsCase
}

/** Steps at which the job has ended, and only its process has not. */
const afterTheJob = ['events.ended']

/** Where nobody takes a job any more once one has stopped there. */
const blocking = 'jobs.taken'

/** Each batch of cases dies with a worker of its own, which is no more than it takes of a tenant's notifications at once. */
export function everyDeath(batches: readonly Record<string, NewsCase>[]): Doomed[] {
  return batches.flatMap((batch) => deathsOf(batch))
}

function deathsOf(batch: Record<string, NewsCase>): Doomed[] {
  const deaths = Object.entries(batch).flatMap(([what, how]) => how.points.map((point) => ({ what, point, how })))
  return deaths.toSorted((one, other) => Number(one.point === blocking) - Number(other.point === blocking))
}

export class NewsScene {
  readonly scene: Scene
  readonly audience: Audience
  readonly #orders = new Map<string, Placed>()

  constructor(scene: Scene, audience: Audience) {
    this.scene = scene
    this.audience = audience
  }

  static async start(): Promise<NewsScene> {
    const audience = await startAudience()
    const scene = await startScene({ settings: audience.settings })
    await scene.books.webhooks({ drop: 1 })
    await scene.backend.put('/v1/webhook-endpoint', { url: audience.merchant.url })
    return new NewsScene(scene, audience)
  }

  async stop(): Promise<void> {
    await this.scene.stop()
    await this.audience.stop()
  }

  /** All victims die; then the provider delivers everything again, and a new process goes on until nothing is left. */
  async killAndTakeOver(batches: readonly Record<string, NewsCase>[]): Promise<void> {
    const told: Notification[] = []
    for (const batch of batches) await this.#killOne(deathsOf(batch), told)
    await this.deliverEverything()
    await deliverAgain(this.scene, told)
    await takeOver(this.scene, this.audience.settings)
  }

  async deliverEverything(): Promise<void> {
    await deliverAgain(this.scene, await notificationsOf(this.scene))
  }

  /** The order that died there. */
  orderAt({ what, point }: Pick<Doomed, 'what' | 'point'>): Placed {
    const order = this.#orders.get(`${point} ${what}`)
    if (order === undefined) throw new Error(`no order has died at ${point}: ${what}`)
    return order
  }

  async #killOne(deaths: readonly Doomed[], told: Notification[]): Promise<void> {
    // What is still open of those that have died must not stop where the next one is to stop.
    await putOffAsking(this.scene)
    await runJobs(unhurried(this.scene.service))
    const settings = {
      ROLES: 'worker',
      WORKER_POLL_MS: '20',
      RECOVERY_INTERVAL_MS: '3600000',
      // So long that no victim takes what another died of.
      IDEMPOTENCY_LEASE_SECONDS: '3600',
    }
    const victim = await startServiceProcess(this.scene.env({ ...this.audience.settings, ...settings }))
    let news: Notification
    await strandAndKill(
      victim,
      deaths.map(({ what, point, how }) => ({
        point,
        before: async () => {
          const order = await how.happen(this.scene)
          await this.#untilTheRestIsDone()
          this.#orders.set(`${point} ${what}`, order)
          news =
            typeof how.news === 'string' ? await newsOf(this.scene, order, how.news) : await how.news(this.scene, order)
          told.push(news)
        },
        provoke: async () => {
          await deliver(this.scene.service.url, news)
          return undefined
        },
      })),
      async () => {
        if (deaths.every(({ point }) => point !== blocking)) await this.#untilTheRestIsDone()
      },
    )
  }

  /** The worker has done what it had to do for all that has not stopped. */
  async #untilTheRestIsDone(): Promise<void> {
    const stopped = [...this.#orders.keys()].filter((at) => !afterTheJob.some((point) => at.startsWith(`${point} `)))
    const ready = this.scene.db.selectFrom('jobs').select(['topic', 'business_id']).where('state', '=', 'ready')
    await until(
      async () => {
        const jobs = await ready.execute()
        if (jobs.length !== stopped.length) throw new Error(`${JSON.stringify(jobs)}, stopped at ${stopped}`)
        return true
      },
      { what: 'the rest of its work' },
    )
  }
}

/** The provider's news of this type about an order's payment, once there is some. */
export function newsOf(scene: Scene, { intent }: Placed, type: string): Promise<Notification> {
  const find = async () =>
    (await notificationsOf(scene)).find((each) => each.type === type && JSON.stringify(each).includes(intent))
  return until(find, { what: `${type} of ${intent}` })
}

/** The service, whichever process of it, has applied all news of the order's payment so far. */
export async function tellSoFar(scene: Scene, { intent }: Placed): Promise<void> {
  const events = (await notificationsOf(scene)).filter((each) => JSON.stringify(each).includes(intent))
  await deliverAgain(scene, events)
  const ids = events.map(({ id }) => id)
  const waiting = scene.db.selectFrom('provider_events').where('event_id', 'in', ids).where('state', '=', 'waiting')
  await until(async () => (await waiting.selectAll().execute()).length === 0, { what: 'the news so far to be applied' })
}
