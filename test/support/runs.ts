/** A worker's calls for metered runs, as its code would make them. */
import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../src/store/tables.ts'
import { expireRuns } from '../../src/workers/expire-runs.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import type { Client, Reply } from './client.ts'
import { newKey, type Scene } from './scene.ts'
import { until } from './until.ts'

/** A body of `POST /v1/runs` that succeeds. */
export function hold(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    customer: { email: 'ada@example.com', name: 'Ada' },
    payment_method: 'pm_card_visa',
    currency: 'EUR',
    hold_amount: 1000,
    ...overrides,
  }
}

export function startRun(client: Client, key: string, body = hold()): Promise<Reply> {
  return client.post('/v1/runs', body, { 'idempotency-key': key })
}

/** The id of a new run whose hold is placed. */
export async function activeRun(client: Client, key = newKey(), body = hold()): Promise<string> {
  const reply = await startRun(client, key, body)
  if (reply.status !== 201) throw new Error(`no hold: ${reply.status} ${reply.text}`)
  return reply.json.id
}

export function use(client: Client, runId: string, meterType: string, quantity: number): Promise<Reply> {
  return client.post(`/v1/runs/${runId}/usage`, { meter_type: meterType, quantity })
}

export function finalize(client: Client, runId: string): Promise<Reply> {
  return client.post(`/v1/runs/${runId}/finalize`)
}

/** The run has not been finalized in time, or its end was left half-way: a worker is to look at it now. */
export async function makeRunDue(db: Kysely<Tables>, runId: string): Promise<void> {
  await db
    .updateTable('runs')
    .set({ next_look_at: sql`clock_timestamp() - interval '1 ms'` })
    .where('order_id', '=', runId.replace('run_', 'ord_'))
    .execute()
}

/** The run once workers have done all that is left to do, and no pause or lease stands in their way: what a further finalize
 * says. */
export async function endOfRun(scene: Scene, runId: string): Promise<Reply> {
  const orderId = runId.replace('run_', 'ord_')
  const due = sql<Date>`clock_timestamp() - interval '1 ms'`
  return until(
    async () => {
      await scene.db.updateTable('orders').set({ next_ask_at: due }).where('order_id', '=', orderId).execute()
      await scene.db.updateTable('hold_endings').set({ next_ask_at: due }).where('order_id', '=', orderId).execute()
      await makeRunDue(scene.db, runId)
      await recoverOrders(scene.service.deps)
      await expireRuns(scene.service.deps)
      const { json } = await scene.backend.get(`/v1/runs/${runId}`)
      return !['pending', 'active', 'finalizing'].includes(json.status) && finalize(scene.backend, runId)
    },
    { what: `the end of ${runId}` },
  )
}
