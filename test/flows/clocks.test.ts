/** A process whose clock is wrong decides by the database's: the times of an order are of that one. */
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { expire, makeDue, makeOlder, orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { neverArrived, waitsForCustomer } from '../support/stuck.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene({ settings: { CHECKOUT_BUDGET_MS: '4000' } })
  await scene.books.webhooks({ drop: 1 })
})
afterEach(async () => {
  vi.useRealTimers()
  await scene.books.noFaults()
})
afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
})

const recover = () => recoverOrders(scene.service.deps)

/** This process's clock, timers and measured times aside. */
function setClockAhead(minutes: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + minutes * 60_000 })
}

describe('a clock that is ahead', () => {
  it('ends no order whose charge may still arrive', async () => {
    const { key } = await neverArrived(scene)
    await makeDue(scene.db, key)
    setClockAhead(30)
    await recover()
    expect(await orderOf(scene.db, key)).toMatchObject({ status: 'needs_reconcile' })
  })

  it('lets no order expire before its time', async () => {
    const { key } = await waitsForCustomer(scene)
    await makeDue(scene.db, key)
    setClockAhead(120)
    await recover()
    expect((await orderOf(scene.db, key)).status).toBe('requires_action')
  })

  it('takes no refund for failed that may still arrive', async () => {
    const paid = (await scene.shop.checkout(newKey())).json
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_before', times: 10 })
    const key = { 'idempotency-key': newKey() }
    const refund = await scene.backend.post(`/v1/orders/${paid.id}/refunds`, { amount: 100 }, key)
    expect(refund.status).toBe(202)
    await scene.books.noFaults()
    await scene.db
      .updateTable('refunds')
      .set({ send_is_pointless: true, next_ask_at: sql`clock_timestamp()` })
      .where('refund_id', '=', refund.json.id)
      .execute()
    setClockAhead(30)
    expect(await settleRefunds(scene.service.deps)).toBe(1)
    expect((await scene.backend.get(`/v1/refunds/${refund.json.id}`)).json.status).toBe('pending')
  })
})

describe('a clock that is behind', () => {
  it('charges nobody who has left', async () => {
    const { key } = await neverArrived(scene)
    await scene.db.updateTable('orders').set({ send_is_pointless: false }).where('attempt_key', '=', key).execute()
    await makeOlder(scene.db, key, 6)
    const sends = await scene.books.chargesSeen(key)
    setClockAhead(-30)
    await recover()
    expect(await scene.books.chargesSeen(key)).toEqual(sends)
    expect((await orderOf(scene.db, key)).status).toBe('needs_reconcile')
  })

  it('lets an order expire all the same', async () => {
    const { key } = await waitsForCustomer(scene)
    await expire(scene.db, key)
    setClockAhead(-120)
    await recover()
    expect((await orderOf(scene.db, key)).status).toBe('canceled')
  })
})
