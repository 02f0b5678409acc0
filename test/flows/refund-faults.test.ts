import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { FaultRule } from '../support/books.ts'
import {
  booked,
  endRefundSending,
  makeRefundsDue,
  movedFor,
  orderShown,
  type Placed,
  place,
  refund,
  refundsOf,
  sumRefunded,
  unhurried,
} from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene({ settings: { PROVIDER_TIMEOUT_MS: '1000', CHECKOUT_BUDGET_MS: '2500' } })
  deps = unhurried(scene.service)
  await scene.books.webhooks({ drop: 1 })
})
afterEach(() => scene.books.noFaults())
afterAll(() => scene.stop())

const faults: FaultRule['fault'][] = ['latency', 'drop_before', 'drop_after', 'error_before', 'error_after', 'hang']

/** Asks until it has ended, as the worker would in time. */
async function drive(order: Placed): Promise<void> {
  for (let run = 0; run < 5; run++) {
    await makeRefundsDue(scene.db, order.id)
    await settleRefunds(deps)
  }
}

describe('a refund whose call goes wrong', () => {
  it.each(faults)('once, by %s, is made once and found', async (fault) => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault, times: 1, ...slowly(fault) })
    const key = newKey()
    const first = await refund(scene.backend, order.id, { amount: 900 }, key)
    expect([201, 202]).toContain(first.status)
    await scene.books.noFaults()
    await drive(order)
    // Without a trace at the provider it is only then sure that nothing comes any more.
    await endRefundSending(scene.db, order.id)
    await drive(order)
    const end = await refund(scene.backend, order.id, { amount: 900 }, key)
    expect([end.status, end.json.id]).toEqual([201, first.json.id])
    expect(end.json.status).toBe(fault === 'error_before' ? 'failed' : 'succeeded')
    expect(await sumRefunded(scene, order)).toBe(fault === 'error_before' ? 0 : 900)
    expect((await booked(scene, order)).refunds.length).toBeLessThanOrEqual(1)
    expect((await orderShown(scene, order.id)).refunded).toBe(await sumRefunded(scene, order))
    expect((await movedFor(scene, order.id)).refund).toBe(fault === 'error_before' ? undefined : 900)
  })

  it.each(faults)(
    'for the whole request, by %s, stays in doubt and counts as spent until the worker has read it',
    async (fault) => {
      const order = await place(scene)
      await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault, ...slowly(fault) })
      const key = newKey()
      const first = await refund(scene.backend, order.id, { amount: 2000 }, key)
      expect([first.status, first.json.status]).toEqual([202, 'pending'])
      expect(await orderShown(scene, order.id)).toMatchObject({ status: 'partially_refunded', refunded: 2000 })
      const other = await refund(scene.backend, order.id, { amount: 501 })
      expect([other.status, other.json.refundable]).toEqual([409, 500])
      await scene.books.noFaults()
      await drive(order)
      await endRefundSending(scene.db, order.id)
      await drive(order)
      const end = await refund(scene.backend, order.id, { amount: 2000 }, key)
      const isMade = fault !== 'error_before'
      expect([end.status, end.json.status, end.json.id]).toEqual([201, isMade ? 'succeeded' : 'failed', first.json.id])
      expect((await booked(scene, order)).refunds).toHaveLength(isMade ? 1 : 0)
      expect((await orderShown(scene, order.id)).refunded).toBe(isMade ? 2000 : 0)
    },
  )

  it('that surely never arrived is told so, frees its part, and its key makes it', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'rate_limit' })
    const key = newKey()
    const first = await refund(scene.backend, order.id, { amount: 2000 }, key)
    expect([first.status, first.json.code]).toEqual([503, 'provider_unavailable'])
    expect(first.headers.get('retry-after')).not.toBeNull()
    expect(await orderShown(scene, order.id)).toMatchObject({ status: 'paid', refunded: 0 })
    const [row] = await refundsOf(scene.db, order.id)
    expect((await scene.backend.get(`/v1/refunds/${row?.refund_id}`)).status).toBe(404)
    // Nobody else sends it meanwhile.
    await scene.books.noFaults()
    await drive(order)
    expect(await sumRefunded(scene, order)).toBe(0)
    const again = await refund(scene.backend, order.id, { amount: 2000 }, key)
    expect([again.status, again.json.status]).toEqual([201, 'succeeded'])
    expect(await sumRefunded(scene, order)).toBe(2000)
  })

  it('that surely never arrived is refused later where its part has been spent, and its key still goes on', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'rate_limit' })
    const key = newKey()
    await refund(scene.backend, order.id, { amount: 2000 }, key)
    await scene.books.noFaults()
    expect((await refund(scene.backend, order.id, { amount: 1000 })).status).toBe(201)
    const again = await refund(scene.backend, order.id, { amount: 2000 }, key)
    expect([again.status, again.json.code, again.json.refundable]).toEqual([409, 'refund_exceeds_captured', 1500])
    expect(await sumRefunded(scene, order)).toBe(1000)
  })

  it('is found in the provider’s list where its stored failure is all that its key brings', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_after', times: 1 })
    const key = newKey()
    expect((await refund(scene.backend, order.id, { amount: 300 }, key)).status).toBe(202)
    for (const fault of ['error_before', 'drop_after', 'rate_limit'] as const) {
      await scene.books.fault({ method: 'GET', path: '/v1/refunds', fault })
      await drive(order)
      expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'pending', provider_refund_id: null }])
      await scene.books.noFaults()
    }
    await drive(order)
    expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'succeeded' }])
    expect((await refund(scene.backend, order.id, { amount: 300 }, key)).json.status).toBe('succeeded')
  })

  it('that is pending goes on being asked about through faults of reading it', async () => {
    const order = await place(scene, { payment_method: 'pm_card_pendingRefund' })
    const first = await refund(scene.backend, order.id, { amount: 300 })
    expect(first.status).toBe(202)
    for (const fault of ['error_before', 'drop_after', 'rate_limit', 'hang'] as const) {
      await scene.books.fault({ method: 'GET', path: '/v1/refunds', fault })
      await drive(order)
      expect((await scene.backend.get(`/v1/refunds/${first.json.id}`)).json.status).toBe('pending')
      await scene.books.noFaults()
    }
    await drive(order)
    expect((await scene.backend.get(`/v1/refunds/${first.json.id}`)).json.status).toBe('succeeded')
  })

  it('is not searched for in another account’s books', async () => {
    const order = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'drop_after' })
    expect((await refund(scene.backend, order.id, { amount: 300 })).status).toBe(202)
    await scene.books.noFaults()
    await scene.db
      .updateTable('tenants')
      .set({ connected_account: 'acct_other' })
      .where('tenant_id', '=', 'ten_demo')
      .execute()
    await drive(order)
    expect(await orderShown(scene, order.id)).toMatchObject({ reconcile_reason: 'provider_account_changed' })
    expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'pending' }])
    await scene.db.updateTable('tenants').set({ connected_account: null }).where('tenant_id', '=', 'ten_demo').execute()
    await drive(order)
    expect(await refundsOf(scene.db, order.id)).toMatchObject([{ status: 'succeeded' }])
    await scene.db.updateTable('orders').set({ reconcile_reason: null }).where('order_id', '=', order.id).execute()
  })

  it('leaves our books equal to the provider’s', async () => {
    await expectBooksInOrder(scene)
  })
})

/** Longer than a call may take. */
function slowly(fault: FaultRule['fault']): { latency_ms?: number } {
  return fault === 'latency' ? { latency_ms: 1500 } : {}
}
