/** What a request's line in the log names: whose it is, which attempt, and which order it is about. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKeyForLog } from '../../src/domain/idempotency-key.ts'
import { cart, type Reply } from '../support/client.ts'
import { deliver, notification, providerObject } from '../support/notifications.ts'
import { startRun } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
let service: ServiceProcess
beforeAll(async () => {
  scene = await startScene()
  service = await startServiceProcess(scene.env({ ROLES: 'api', LOG_LEVEL: 'info' }))
})
afterAll(async () => {
  await service.stop()
  await scene.stop()
})

const lines = () => service.log.map((line) => JSON.parse(line) as Record<string, unknown>)
const shop = () => scene.shop.at(service.url)
const backend = () => scene.backend.at(service.url)
const admin = () => scene.admin.at(service.url)

async function lineOf(reply: Reply): Promise<Record<string, unknown> | undefined> {
  const requestId = reply.headers.get('x-request-id')
  const find = () => lines().find(({ msg, request_id }) => msg === 'request' && request_id === requestId)
  await until(() => find() !== undefined, { what: 'its line' })
  return find()
}

async function expectOrder(reply: Reply, status: number, orderId: string): Promise<void> {
  expect(reply.status, reply.text).toBe(status)
  expect(await lineOf(reply)).toMatchObject({ tenant_id: 'ten_demo', order_id: orderId, status })
}

describe('the line of a request names its order', () => {
  it('that was declined, and on every repeat, from memory and from the row', async () => {
    const key = newKey()
    const declined = cart({ payment_method: 'pm_card_chargeDeclined' })
    const first = await shop().checkout(key, declined)
    const orderId = first.json.order_id
    await expectOrder(first, 402, orderId)
    const again = await shop().checkout(key, declined)
    expect([again.text, again.replayed]).toEqual([first.text, true])
    await expectOrder(again, 402, orderId)
    expect((await lineOf(again))?.key_hash).toBe(hashKeyForLog(key))
    // Another process has never given that answer.
    const elsewhere = await startServiceProcess(scene.env({ ROLES: 'api', LOG_LEVEL: 'info' }))
    try {
      expect((await scene.shop.at(elsewhere.url).checkout(key, declined)).text).toBe(first.text)
      const told = () => elsewhere.log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'request')
      await until(() => told() !== undefined, { what: 'its line' })
      expect(told()).toMatchObject({ order_id: orderId, status: 402 })
    } finally {
      await elsewhere.stop()
    }
    await expectOrder(await shop().checkout(key, cart()), 409, orderId)
    await expectOrder(await shop().get(`/v1/checkouts/${key}`), 200, orderId)
    await expectOrder(await shop().post(`/v1/checkouts/${key}/cancel`), 200, orderId)
  })

  it('that is paid, looked up, too late to cancel, refunded and read', async () => {
    const key = newKey()
    const paid = await shop().checkout(key)
    const { id } = paid.json
    await expectOrder(paid, 201, id)
    await expectOrder(await shop().get(`/v1/checkouts/${key}`), 200, id)
    await expectOrder(await shop().post(`/v1/checkouts/${key}/cancel`), 409, id)
    await expectOrder(await backend().get(`/v1/orders/${id}`), 200, id)
    await expectOrder(await backend().post(`/v1/orders/${id}/capture`), 409, id)
    const refundKey = { 'idempotency-key': newKey() }
    const refund = await backend().post(`/v1/orders/${id}/refunds`, { amount: 100 }, refundKey)
    await expectOrder(refund, 201, id)
    await expectOrder(await backend().post(`/v1/orders/${id}/refunds`, { amount: 100 }, refundKey), 201, id)
    await expectOrder(await backend().get(`/v1/refunds/${refund.json.id}`), 200, id)
    const tooMuch = { 'idempotency-key': newKey() }
    await expectOrder(await backend().post(`/v1/orders/${id}/refunds`, { amount: 99_999 }, tooMuch), 409, id)
    await expectOrder(await backend().get(`/v1/ledger/transfers?order_id=${id}`), 200, id)
    await expectOrder(await admin().get(`/v1/admin/orders/${id}`), 200, id)
    const requeued = await admin().post(`/v1/admin/jobs/${encodeURIComponent(`order_news:${id}:paid`)}/requeue`)
    await expectOrder(requeued, 200, id)
  })

  it('that waits for the customer, and whose attempt did not reach the provider', async () => {
    const key = newKey()
    const open = await shop().checkout(key, cart({ payment_method: 'pm_card_threeDSecure2Required' }))
    await expectOrder(open, 202, open.json.id)
    await expectOrder(await shop().post(`/v1/checkouts/${key}/cancel`), 200, open.json.id)
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'rate_limit', times: 20 })
    const unreached = await shop().checkout(newKey())
    await scene.books.noFaults()
    expect(unreached.status).toBe(503)
    expect((await lineOf(unreached))?.order_id).toMatch(/^ord_/)
  })

  it('of a run, from its start to its end', async () => {
    const run = await startRun(backend(), newKey())
    const path = `/v1/runs/${run.json.id}`
    await expectOrder(run, 201, run.json.order_id)
    await expectOrder(await backend().get(path), 200, run.json.order_id)
    await expectOrder(await backend().post(`${path}/finalize`), 200, run.json.order_id)
  })
})

it('a request about no order names none, whatever its path says', async () => {
  for (const path of ['/v1/orders', '/v1/products', '/v1/orders/ord_nobody@example.com']) {
    expect(await lineOf(await backend().get(path))).not.toHaveProperty('order_id')
  }
})

it('a notification names tenant and order, on its own line and on that of its request', async () => {
  const paid = await shop().checkout(newKey())
  const orderId = paid.json.id
  const intent = await providerObject(scene, `payment_intents/${paid.json.payment.reference}`)
  const ours = await deliver(service.url, notification('payment_intent.created', intent))
  await expectOrder(ours, 200, orderId)
  const of = (reply: Reply) =>
    lines().find((line) => line.msg === 'notification' && line.request_id === reply.headers.get('x-request-id'))
  expect(of(ours)).toMatchObject({ tenant_id: 'ten_demo', order_id: orderId })

  // Payments of others at the same account may carry anything under these names.
  const theirs = { ...intent, metadata: { tenant: 'ten_demo', order: 'ada@example.com', key: 'k' } }
  const strange = await deliver(service.url, notification('payment_intent.created', theirs))
  expect(await lineOf(strange)).not.toHaveProperty('order_id')
  expect(of(strange)).not.toHaveProperty('tenant_id')
})
