/**
 * The real service, where many orders are taken through sequences of events side by side: each round puts the orders into
 * the states that they have to start from, delivers one event to each, signed and over HTTP, and runs its jobs.
 */
import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { Deps } from '../../../src/deps.ts'
import { armCheckpoints } from '../../../src/runtime/checkpoint.ts'
import { endHolds } from '../../../src/workers/end-holds.ts'
import { recoverOrders } from '../../../src/workers/recover-orders.ts'
import { runJobs } from '../../../src/workers/run-jobs.ts'
import { settleRefunds } from '../../../src/workers/settle-refunds.ts'
import { topics } from '../../../src/workers/topics.ts'
import type { BookedPayment } from '../books.ts'
import { cart } from '../client.ts'
import { inParallel } from '../in-parallel.ts'
import { unhurried } from '../money-back.ts'
import { deliver, type Notification, providerCall, providerObject } from '../notifications.ts'
import { newKey, type Scene, startScene } from '../scene.ts'
import { price, stockBefore } from './books.ts'
import type { Objects, ProviderObject } from './letters.ts'
import { type Owner, prepareRows, putRows, type Rows, readRows } from './rows.ts'
import { AtProvider, type Start, type Truth } from './truths.ts'

/** Recovery, leases and expiry come when they are called, and not before: the sequences are over by then. */
const settings = {
  RECONCILE_AFTER_MS: '600000',
  IDEMPOTENCY_LEASE_SECONDS: '900',
  IDEMPOTENCY_WAIT_MS: '18000',
}

/** Those that follow from events or bring events further; what others are told of an order is no part of it. */
const handled = ['provider_event', 'close_payment', 'refund_late_payment']

export type Begin = Pick<Truth['begins'][number], 'card' | 'capture'> & { start: Start }

/** An order whose payment is as a truth says. */
export interface Subject extends Owner {
  events: string[]
  key: string
  intent: string
  objects: Objects
}

export type Step =
  /** A new order, whose news has not come yet. */
  | { place: Truth; as: Begin }
  /** From this state on, one event; or recovery, as soon as everything is due. */
  | { subject: Subject; from: Rows | null; event?: Notification; redeliver?: boolean; settle?: boolean }

export interface Taken {
  subject: Subject
  rows: Rows
  payments: BookedPayment[]
}

export class SequenceStage {
  readonly scene: Scene
  readonly #deps: Deps
  #foreign: ProviderObject = {}

  static async set(): Promise<SequenceStage> {
    const stage = new SequenceStage(await startScene({ settings }))
    await prepareRows(stage.scene.db)
    await stage.scene.books.webhooks({ drop: 1 })
    const { json } = await stage.scene.shop.checkout(newKey(), cart())
    stage.#foreign = await providerObject(stage.scene, `payment_intents/${json.payment.reference}`)
    return stage
  }

  private constructor(scene: Scene) {
    this.scene = scene
    this.#deps = unhurried(scene.service)
  }

  stop(): Promise<void> {
    return this.scene.stop()
  }

  /** Takes all of them; in the steps' order. */
  async take(steps: readonly Step[]): Promise<Taken[]> {
    const placed = await this.#place(steps.filter((step) => 'place' in step))
    const moved = steps.filter((step) => 'subject' in step)
    const back = moved.flatMap(({ subject, from }) => (from === null ? [] : [{ owner: subject, rows: from }]))
    if (back.length > 0) await putRows(this.scene.db, back)
    for (const { owner, rows } of back) {
      ;(owner as Subject).events = (rows.provider_events ?? []).map(({ event_id }) => event_id)
    }
    await inParallel(moved, ({ subject, event, redeliver }) => this.#tell(subject, event, redeliver === true))
    await this.#runJobs()
    await this.#settle(moved.filter(({ settle }) => settle === true).map(({ subject }) => subject))
    return this.#look(steps.map((step) => ('place' in step ? (placed.shift() as Subject) : step.subject)))
  }

  async #tell(subject: Subject, event: Notification | undefined, redeliver: boolean): Promise<void> {
    if (event === undefined) return
    if (!subject.events.includes(event.id)) subject.events.push(event.id)
    for (let times = redeliver ? 2 : 1; times > 0; times--) {
      const { status } = await deliver(this.scene.service.url, event)
      if (status !== 200) throw new Error(`the inbox answers ${status} to ${event.type}`)
    }
  }

  async #runJobs(): Promise<void> {
    const known = Object.fromEntries(handled.map((topic) => [topic, topics[topic]])) as typeof topics
    await runJobs(this.#deps, undefined, known)
    // What has to be tried again is tried when everything is settled.
    await sql`UPDATE jobs SET run_at = clock_timestamp() + interval '1 hour' WHERE state = 'ready'`.execute(
      this.scene.db,
    )
  }

  /** Whoever held them is gone, and everything about them is due. */
  async #settle(subjects: readonly Subject[]): Promise<void> {
    if (subjects.length === 0) return
    const orders = subjects.map(({ order }) => order)
    const { db } = this.scene
    for (let times = 0; times < 2; times++) {
      await sql`UPDATE attempts SET lease_expires_at = now() WHERE object_id = ANY (${orders}) AND state = 'running'`.execute(
        db,
      )
      await sql`UPDATE orders SET next_ask_at = now() WHERE order_id = ANY (${orders})`.execute(db)
      await sql`UPDATE refunds SET next_ask_at = now() WHERE order_id = ANY (${orders})`.execute(db)
      await sql`UPDATE hold_endings SET next_ask_at = now() WHERE order_id = ANY (${orders})`.execute(db)
      await sql`UPDATE jobs SET run_at = now() WHERE state = 'ready' AND (payload->>'order_id' = ANY (${orders})
                  OR (topic = 'provider_event' AND business_id = ANY (${subjects.flatMap(({ events }) => events)})))`.execute(
        db,
      )
      for (const work of [recoverOrders, settleRefunds, endHolds]) while ((await work(this.#deps)) > 0);
      await this.#runJobs()
    }
  }

  async #look(subjects: readonly Subject[]): Promise<Taken[]> {
    const rows = await readRows(this.scene.db, subjects)
    return inParallel([...subjects.entries()], async ([place, subject]) => ({
      subject,
      rows: rows[place] as Rows,
      payments: [(await this.scene.books.control('GET', `/payment_intents/${subject.intent}`)) as BookedPayment],
    }))
  }

  async #place(steps: readonly { place: Truth; as: Begin }[]): Promise<Subject[]> {
    if (steps.length === 0) return []
    const subjects = await this.#checkOut(steps)
    await this.#runJobs()
    const byFault = Map.groupBy([...steps.entries()], ([, { place }]) => JSON.stringify(place.ours?.fault ?? null))
    for (const [fault, of] of byFault) {
      if (fault !== 'null') await this.scene.books.fault(JSON.parse(fault))
      await inParallel(of, async ([at, { place }]) => place.ours?.act(this.scene, (subjects[at] as Subject).order))
      if (fault !== 'null') await this.scene.books.noFaults()
    }
    await inParallel([...steps.entries()], async ([at, { place }]) => {
      const subject = subjects[at] as Subject
      await place.happens(new AtProvider(this.scene, subject.intent))
      subject.objects = await this.#objectsOf(subject, place)
    })
    return subjects
  }

  async #checkOut(steps: readonly { as: Begin }[]): Promise<Subject[]> {
    const { scene } = this
    const subjects: Subject[] = []
    const byStart = Map.groupBy([...steps.entries()], ([, { as }]) => as.start)
    for (const [start, of] of byStart) {
      const run = `${start}-${randomBytes(4).toString('hex')}`
      const skus = of.map((_, n) => `${run}-${n}`)
      await scene.db
        .insertInto('products')
        .values(
          skus.map((sku) => ({
            tenant_id: 'ten_demo',
            sku,
            name: sku,
            unit_price: price,
            currency: 'EUR',
            available: stockBefore,
          })),
        )
        .execute()
      if (start === 'lost') await this.#failCharges('error_after')
      if (start === 'closed') await this.#failCharges('error_before')
      if (start === 'pending') {
        armCheckpoints((point) => {
          if (point === 'checkout.charged') throw new Error('whoever charged has died')
        })
      }
      await inParallel(of, async ([place, { as }]) => {
        const key = newKey()
        const sku = skus[of.findIndex(([each]) => each === place)] as string
        const body = cart({
          items: [{ sku, quantity: 1 }],
          payment_method: as.card,
          capture: as.capture ?? 'automatic',
        })
        await scene.shop.checkout(key, body)
        const row = await scene.db
          .selectFrom('orders')
          .select(['order_id', 'intent_id'])
          .where('tenant_id', '=', 'ten_demo')
          .where('attempt_key', '=', key)
          .executeTakeFirstOrThrow()
        const none = {} as Objects
        subjects[place] = { order: row.order_id, sku, key, intent: row.intent_id ?? '', events: [], objects: none }
      })
      armCheckpoints(undefined)
      await scene.books.noFaults()
      const placed = of.map(([place]) => subjects[place] as Subject)
      if (start === 'closed')
        await this.#close(
          placed,
          of.map(([, { as }]) => as),
        )
    }
    const unnamed = subjects.filter(({ intent }) => intent === '')
    const intents = new Map(
      unnamed.length === 0 ? [] : (await scene.books.payments()).map(({ metadata, id }) => [metadata.order, id]),
    )
    for (const subject of unnamed) subject.intent = intents.get(subject.order) ?? ''
    return subjects
  }

  #failCharges(fault: 'error_after' | 'error_before'): Promise<void> {
    return this.scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault })
  }

  /** Nothing was found and nobody waits any more: they end unpaid. Then a call arrives that the network had kept. */
  async #close(subjects: readonly Subject[], begins: readonly Begin[]): Promise<void> {
    const orders = subjects.map(({ order }) => order)
    const past = new Date(Date.now() - 3_600_000)
    await this.scene.db
      .updateTable('orders')
      .set({ created_at: past, last_send_before: past, expires_at: past, next_ask_at: past })
      .where('order_id', 'in', orders)
      .execute()
    while ((await recoverOrders(this.#deps)) > 0);
    await inParallel([...subjects.entries()], async ([place, { order, key }]) => {
      const { card, capture } = begins[place] as Begin
      const parameters = {
        amount: String(price),
        currency: 'eur',
        confirm: 'true',
        payment_method: card,
        capture_method: capture ?? 'automatic',
        'payment_method_types[]': 'card',
        'metadata[tenant]': 'ten_demo',
        'metadata[order]': order,
        'metadata[key]': key,
      }
      await providerCall(this.scene, 'POST', 'payment_intents', parameters, { 'stripe-version': '2026-08-26.dahlia' })
    })
  }

  async #objectsOf({ intent, order, key }: Subject, truth: Truth): Promise<Objects> {
    const { scene } = this
    const payment = await providerObject(scene, `payment_intents/${intent}`)
    const listed = async (what: string) =>
      (await providerObject(scene, `${what}?payment_intent=${intent}`)).data as ProviderObject[]
    const [refunds, disputes] = [await listed('refunds'), await listed('disputes')]
    const metadata = { tenant: 'ten_demo', order, key }
    const { latest_charge } = payment
    const charge =
      typeof latest_charge === 'string'
        ? await providerObject(scene, `charges/${latest_charge}`)
        : { ...madeUp.charge, payment_intent: intent, metadata }
    // The first that was made stands last.
    const refund = refunds.at(-1)
    const dispute = disputes.at(-1)
    const waiting = { status: 'requires_action', amount_received: 0, amount_capturable: 0, latest_charge: null }
    return {
      payment,
      paymentBefore: { ...payment, ...waiting, ...truth.before },
      charge,
      refund: refund ?? { ...madeUp.refund, payment_intent: intent },
      refundBefore:
        refund === undefined
          ? { ...madeUp.refund, payment_intent: intent, status: 'failed' }
          : { ...refund, status: refund.status === 'failed' ? 'succeeded' : 'pending' },
      dispute: dispute ?? { ...madeUp.dispute, payment_intent: intent, status: 'lost' },
      disputeBefore: { ...(dispute ?? { ...madeUp.dispute, payment_intent: intent }), status: 'needs_response' },
      foreign: { ...this.#foreign, metadata },
    }
  }
}

/** Where there is none, events are about one that the provider does not know. */
const madeUp = {
  charge: {
    id: 'ch_made_up',
    object: 'charge',
    status: 'succeeded',
    amount: price,
    amount_captured: price,
    amount_refunded: price,
    captured: true,
    currency: 'eur',
  },
  refund: {
    id: 're_made_up',
    object: 'refund',
    status: 'succeeded',
    amount: 100,
    currency: 'eur',
    created: 1,
    metadata: {},
  },
  dispute: {
    id: 'du_made_up',
    object: 'dispute',
    status: 'needs_response',
    reason: 'fraudulent',
    amount: 100,
    currency: 'eur',
  },
}
