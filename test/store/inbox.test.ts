import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acceptEvent, eventCursor, listEvents, type StoredEvent } from '../../src/store/inbox.ts'
import { sweepEvents } from '../../src/workers/sweep-events.ts'
import { deliver, notification } from '../support/notifications.ts'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

async function accept(count: number, type: string): Promise<string[]> {
  const events = Array.from({ length: count }, () => notification(type, { object: 'payment_intent', id: 'pi_1' }))
  await Promise.all(events.map((event) => deliver(scene.service.url, event)))
  return events.map(({ id }) => id)
}

async function age(ids: string[], days: number): Promise<void> {
  await scene.db
    .updateTable('provider_events')
    .set({ received_at: new Date(Date.now() - days * 86_400_000) })
    .where('event_id', 'in', ids)
    .execute()
}

describe('events', () => {
  it('are listed newest first, page by page, each once, also those of one moment', async () => {
    const older = await accept(9, 'payment_intent.processing')
    const newer = await accept(8, 'payment_intent.succeeded')
    await age(older, 1)
    const seen: StoredEvent[] = []
    let after: string | null = null
    do {
      const page = await listEvents(scene.db, { limit: 4, after })
      seen.push(...page.slice(0, 4))
      after = page.length > 4 ? eventCursor(page[3] as StoredEvent) : null
    } while (after !== null)
    const ids = seen.map(({ event_id }) => event_id)
    expect(new Set(ids.slice(0, 8))).toEqual(new Set(newer))
    expect(new Set(ids.slice(8))).toEqual(new Set(older))
    expect(ids).toHaveLength(17)

    const succeeded = await listEvents(scene.db, { limit: 20, after: null }, { type: 'payment_intent.succeeded' })
    expect(succeeded).toHaveLength(8)
    expect(await listEvents(scene.db, { limit: 20, after: null }, { state: 'done' })).toEqual([])
  })

  it('keep only a tenant and an order that look like ours', async () => {
    const made = notification('payment_intent.processing', { object: 'payment_intent', id: 'pi_1' })
    const event = {
      id: made.id,
      type: made.type,
      account: null,
      livemode: false,
      createdAt: new Date(),
      apiVersion: null,
      object: 'payment_intent' as const,
      objectId: 'pi_1',
      readable: true,
      intentId: 'pi with spaces',
      chargeId: null,
      refundId: null,
      disputeId: null,
      status: 'Ada Lovelace',
      amount: 1,
      amountCaptured: 0,
      amountCapturable: 0,
      amountRefunded: null,
      currency: 'EUR',
      metadata: { tenant: 'ten_demo', order: 'ada@example.com' },
      declineCode: null,
      captureBefore: null,
      disputeReason: null,
    }
    expect(await acceptEvent(scene.db, 'stripe', event, true)).toBe(true)
    expect(await acceptEvent(scene.db, 'stripe', event, true)).toBe(false)
    const [row] = await scene.db.selectFrom('provider_events').selectAll().where('event_id', '=', made.id).execute()
    expect(row).toMatchObject({ tenant_id: null, order_id: null, intent_id: null, status: null, currency: 'EUR' })
    const [job] = await scene.db.selectFrom('jobs').selectAll().where('business_id', '=', made.id).execute()
    expect(job).toMatchObject({ tenant_id: '-', topic: 'provider_event' })
  })

  it('are forgotten after 45 days, in batches', async () => {
    const rows = await scene.db.selectFrom('provider_events').select('event_id').execute()
    const [kept, ...old] = rows.map(({ event_id }) => event_id)
    await age(old, 45.1)
    await age([kept as string], 44.9)
    expect(await sweepEvents(scene.service.deps)).toBe(old.length)
    expect(await sweepEvents(scene.service.deps)).toBe(0)
    expect(await scene.db.selectFrom('provider_events').select('event_id').execute()).toEqual([{ event_id: kept }])
  })
})
