import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { booked, movedFor, orderShown, place, refund } from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  const eager = { RECOVERY_INTERVAL_MS: '30', RECONCILE_AFTER_MS: '50', WORKER_POLL_MS: '30' }
  scene = await startScene({ settings: { ...eager, ROLES: 'api,worker' } })
  await scene.start({ ...eager, ROLES: 'worker' })
})
afterAll(() => scene.stop())

describe('two services’ own workers', () => {
  it('end a refund that its request left in doubt', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_after', times: 1 })
    await scene.books.fault({ method: 'GET', path: '/v1/refunds', fault: 'drop_after', times: 3 })
    const key = newKey()
    await refund(scene.backend, order.id, { amount: 800 }, key)
    const reply = await until(async () => {
      const again = await refund(scene.backend, order.id, { amount: 800 }, key)
      return again.status === 201 && again
    })
    expect(reply.json.status).toBe('succeeded')
    expect((await booked(scene, order)).refunds).toHaveLength(1)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 800 })
    await scene.books.noFaults()
  })

  it('end a refund that its bank takes its time over, without a notification', async () => {
    await scene.books.webhooks({ drop: 1 })
    const order = await place(scene, { payment_method: 'pm_card_pendingRefund' })
    const { json } = await refund(scene.backend, order.id)
    await until(async () => (await scene.backend.get(`/v1/refunds/${json.id}`)).json.status === 'succeeded')
    await scene.books.webhooks({})
  })

  it('end a hold whose ending was left in doubt', async () => {
    const order = await place(scene, { capture: 'manual' })
    await scene.books.fault({
      method: '*',
      path: `/v1/payment_intents/${order.intent}`,
      fault: 'error_before',
      times: 6,
    })
    const first = await scene.backend.post(`/v1/orders/${order.id}/capture`, { amount: 900 })
    expect([first.status, first.json.status]).toEqual([202, 'authorized'])
    await until(async () => (await orderShown(scene, order.id)).status === 'paid')
    const again = await scene.backend.post(`/v1/orders/${order.id}/capture`, { amount: 900 })
    expect([again.status, again.json.captured]).toEqual([200, 900])
    expect(await movedFor(scene, order.id)).toEqual({ capture: 900 })
  })

  it('leave our books equal to the provider’s', async () => {
    await until(async () => {
      const waiting = await scene.db.selectFrom('jobs').select('topic').where('state', '=', 'ready').execute()
      return waiting.every(({ topic }) => topic !== 'provider_event')
    })
    await expectBooksInOrder(scene)
  })
})
