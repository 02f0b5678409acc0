/** Everybody at once about the same orders, over two services, each with API and worker. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { Gate } from '../../src/runtime/gate.ts'
import type { Service } from '../../src/service.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { audit, expectBooksInOrder } from '../support/audit.ts'
import { Client, cart } from '../support/client.ts'
import { inParallel } from '../support/in-parallel.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let second: Service
let workers: Deps[]
beforeAll(async () => {
  const settings = { RECONCILE_AFTER_MS: '200' }
  scene = await startScene({ settings })
  second = await scene.start(settings)
  workers = [scene.service, second].map(({ deps }) => ({
    ...deps,
    gate: new Gate({ perSecond: 1000, customersMax: 100, patienceMs: 0 }),
  }))
})
afterAll(() => scene.stop())

const waiting = { payment_method: 'pm_card_threeDSecure2Required' }

it('recovery, repeats, an operator and notifications on one order at once: one of them settles it', async () => {
  await scene.books.webhooks({ drop: 1 })
  for (let round = 0; round < 24; round++) {
    const key = newKey()
    const outcome = round % 3 === 2 ? 'fail' : 'succeed'
    const body = cart({ ...waiting, capture: round % 4 === 3 ? 'manual' : 'automatic' })
    const { json } = await scene.shop.checkout(key, body)
    const intent = json.payment.reference as string
    await scene.books.act(intent, outcome)
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(0) })
      .where('order_id', '=', json.id)
      .execute()
    const object = await providerObject(scene, `payment_intents/${intent}`)
    const type = { requires_payment_method: 'payment_failed', requires_capture: 'amount_capturable_updated' }[
      object.status as string
    ]
    const news = () => notification(`payment_intent.${type ?? 'succeeded'}`, object)
    const [first, other] = [news(), news()]
    const urls = [scene.service.url, second.url]
    await Promise.all([deliver(urls[0], first), deliver(urls[1], other)])

    const decide = (client: Client) =>
      client.post(`/v1/admin/orders/${json.id}/decide`, { outcome: 'payment_failed', reason: 'The customer says so.' })
    const results = await Promise.all([
      ...workers.map((deps) => runJobs(deps).then(() => null)),
      ...workers.map((deps) => recoverOrders(deps).then(() => null)),
      ...urls.map((url) => scene.shop.at(url).checkout(key, body)),
      ...urls.map((url) => decide(scene.admin.at(url))),
      ...urls.map((url) => deliver(url, first)),
    ])
    for (const reply of results) expect(reply === null || reply.status < 500 || reply.status === 503).toBe(true)
    await until(async () => (await Promise.all(workers.map((deps) => runJobs(deps)))).every((ran) => ran === 0))

    const story = await scene.db
      .selectFrom('order_transitions')
      .select(['to_status', 'actor'])
      .where('order_id', '=', json.id)
      .orderBy('at')
      .execute()
    const end = outcome === 'fail' ? 'payment_failed' : object.status === 'requires_capture' ? 'authorized' : 'paid'
    // A hold that the operator was having closed when it came is told as a hold, then let go.
    const ends = end === 'authorized' ? [[end], [end, 'canceled']] : [[end]]
    expect(ends).toContainEqual(story.slice(1).map(({ to_status }) => to_status))
    expect(story[0]?.to_status).toBe('requires_action')
    expect(story[1]?.actor).toBeTruthy()
    const final = await scene.shop.checkout(key, body)
    expect([final.replayed, final.status]).toEqual([true, end === 'payment_failed' ? 402 : 201])
  }
  await expectBooksInOrder(scene)
})

it('the last unit: while its buyer’s failed 3-D Secure is told by everybody at once, it is given back once', async () => {
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/products/single', { name: 'Single', unit_price: 1250, currency: 'EUR', available: 1 })
  const body = (method: string) => cart({ items: [{ sku: 'single', quantity: 1 }], payment_method: method })
  const held = await scene.shop.checkout(newKey(), body(waiting.payment_method))
  expect(held.status).toBe(202)
  const refused = await inParallel(Array.from({ length: 30 }), () =>
    scene.shop.checkout(newKey(), body('pm_card_visa')),
  )
  expect(new Set(refused.map(({ json }) => json.code))).toEqual(new Set(['out_of_stock']))

  const intent = held.json.payment.reference as string
  await scene.books.act(intent, 'fail')
  const object = await providerObject(scene, `payment_intents/${intent}`)
  await inParallel(Array.from({ length: 8 }), (_) =>
    deliver(scene.service.url, notification('payment_intent.payment_failed', object)),
  )
  await Promise.all(workers.map((deps) => runJobs(deps)))
  expect((await scene.shop.get('/v1/products/single')).json.available).toBe(1)
  const next = await scene.shop.checkout(newKey(), body('pm_card_visa'))
  expect(next.status).toBe(201)
  await expectBooksInOrder(scene, { stock: { single: 1 } })
})

it('notifications that are doubled, shuffled, late and lost: in the end both books say the same', {
  timeout: 180_000,
}, async () => {
  const loops = await Promise.all(
    [1, 2].map(() => scene.start({ ROLES: 'api,worker', RECONCILE_AFTER_MS: '200', RECOVERY_INTERVAL_MS: '100' })),
  )
  await scene.books.webhooks({ duplicates: 1.5, shuffle: true, delay_ms: 100, drop: 0.3 })
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'drop_after', probability: 0.1 })
  const methods = [
    'pm_card_visa',
    waiting.payment_method,
    'pm_card_chargeDeclined',
    'pm_card_createDispute',
    'pm_card_pendingRefund',
    'pm_card_refundFail',
    'pm_card_sim_processing',
    'pm_card_threeDSecureRequiredChargeDeclined',
  ]
  const shops = loops.map(({ url }) => new Client(url ?? '', scene.shop.key))
  const orders = await inParallel(
    Array.from({ length: 64 }, (_, n) => n),
    async (n) => {
      const method = methods[n % methods.length] as string
      const capture = n % 16 === 9 ? 'manual' : 'automatic'
      const key = newKey()
      await (shops[n % 2] as Client).checkout(key, cart({ payment_method: method, capture }))
      return { key, n }
    },
  )
  await scene.books.noFaults()
  // The customers finish, some of them not well, and the dashboard gives money back.
  for (const payment of await scene.books.payments()) {
    if (payment.status === 'requires_action' || payment.status === 'processing') {
      await scene.books.act(payment.id, payment.id.charCodeAt(10) % 3 === 0 ? 'fail' : 'succeed')
    }
  }
  for (const { key, n } of orders) {
    const [payment] = await scene.books.paymentsFor(key)
    if (payment?.status === 'succeeded' && payment.disputes.length === 0 && n % 8 !== 3) {
      await scene.books.control('POST', '/refunds', { payment_intent: payment.id, amount: 100 + n })
    }
  }
  // What was lost on the way is sent again, as an operator at the dashboard would, in whatever order.
  await scene.books.webhooks({ duplicates: 0.5, shuffle: true, delay_ms: 50 })
  const { data } = (await scene.books.control('GET', '/events')) as { data: { id: string }[] }
  await inParallel(data, ({ id }) => scene.books.control('POST', `/events/${id}/redeliver`))
  await until(async () => (await audit(scene, { stock: { single: 1 } })).length === 0, {
    timeoutMs: 120_000,
    everyMs: 500,
    what: 'both books to agree',
  }).catch(() => {})
  await expectBooksInOrder(scene, { stock: { single: 1 } })
  const foreign = await scene.db
    .selectFrom('provider_events')
    .select(['type', 'state', 'reason'])
    .where('state', 'in', ['foreign', 'mismatched'])
    .execute()
  expect(foreign).toEqual([])
  const flagged = await scene.db
    .selectFrom('orders')
    .select('order_id')
    .where('reconcile_reason', 'is not', null)
    .execute()
  expect(flagged).toEqual([])
})
