import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { applyDispute } from '../../src/flows/refunds/disputes.ts'
import { auditOrders } from '../../src/store/audit.ts'
import { moneyBackRules } from '../../src/store/audit-money-back.ts'
import { readOrder } from '../../src/store/orders.ts'
import { type Placed, place, refund } from '../support/money-back.ts'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
let order: Placed
let captured: Placed
beforeAll(async () => {
  scene = await startScene()
  await scene.books.webhooks({ drop: 1 })
  order = await place(scene)
  await refund(scene.backend, order.id, { amount: 500 })
  const dispute = {
    disputeId: 'du_1',
    status: 'needs_response',
    moved: 'withdrawn',
    amount: 700,
    currency: 'EUR',
  } as const
  const row = await readOrder(scene.db, 'ten_demo', order.id)
  if (row === null) expect.fail('no order')
  await applyDispute(scene.service.deps, row, dispute)
  captured = await place(scene, { capture: 'manual' })
  await scene.backend.post(`/v1/orders/${captured.id}/capture`)
})
afterAll(() => scene.stop())

async function found(): Promise<string[]> {
  const findings = await auditOrders(scene.service.deps.pool)
  return [...new Set(findings.map(({ rule }) => rule))]
}

async function run(statement: string): Promise<void> {
  await sql.raw(statement.replaceAll(':order', order.id).replaceAll(':captured', captured.id)).execute(scene.db)
}

/** What breaks each rule, and what mends it. */
const breaks: Record<string, [string, string]> = {
  'what an order says of refunds and disputes is what they draw on it': [
    "UPDATE orders SET refunded = refunded - 1 WHERE order_id = ':order'",
    "UPDATE orders SET refunded = refunded + 1 WHERE order_id = ':order'",
  ],
  'more than was captured goes back only where a person is told': [
    "UPDATE disputes SET amount = 2001 WHERE dispute_id = 'du_1'",
    "UPDATE disputes SET amount = 700 WHERE dispute_id = 'du_1'",
  ],
  'a refund is booked exactly while the provider has taken it on': [
    "UPDATE ledger_transfers SET amount = 499 WHERE kind = 'refund' AND order_id = ':order'",
    "UPDATE ledger_transfers SET amount = 500 WHERE kind = 'refund' AND order_id = ':order'",
  ],
  'a refund that was asked for has its attempt, settled once the refund has ended': [
    "UPDATE attempts SET state = 'open' WHERE kind = 'refund'",
    "UPDATE attempts SET state = 'settled' WHERE kind = 'refund'",
  ],
  'a dispute is booked when its money has moved': [
    "UPDATE disputes SET reinstated = true WHERE dispute_id = 'du_1'",
    "UPDATE disputes SET reinstated = false WHERE dispute_id = 'du_1'",
  ],
  'the ending of a hold is over exactly when the order has ended': [
    "UPDATE hold_endings SET ended_at = NULL WHERE order_id = ':captured'",
    "UPDATE hold_endings SET ended_at = now() WHERE order_id = ':captured'",
  ],
  'a refund ends': [
    "UPDATE refunds SET status = 'pending' WHERE order_id = ':order'",
    "UPDATE refunds SET status = 'succeeded' WHERE order_id = ':order'",
  ],
}

it('knows how to break every rule', () => {
  expect(Object.keys(breaks).sort()).toEqual(moneyBackRules.map(({ rule }) => rule).sort())
})

it.each(Object.keys(breaks))('finds where it is broken that %s', async (rule) => {
  const [breaking, mending] = breaks[rule] as [string, string]
  expect(await found()).toEqual([])
  await run(breaking)
  expect(await found()).toContain(rule)
  await run(mending)
  expect(await found()).toEqual([])
})
