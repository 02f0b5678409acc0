import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Deps } from '../../src/deps.ts'
import { applyDispute } from '../../src/flows/refunds/disputes.ts'
import type { ProviderDispute } from '../../src/provider/port.ts'
import { readOrder } from '../../src/store/orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { disputeLives } from '../support/dispute-lives.ts'
import { movedFor, orderShown, type Placed, place, refund, unhurried } from '../support/money-back.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
let deps: Deps
beforeAll(async () => {
  scene = await startScene()
  deps = unhurried(scene.service)
})
afterAll(() => scene.stop())

async function open(order: Placed, more: Record<string, unknown> = {}): Promise<string> {
  return ((await scene.books.control('POST', '/disputes', { payment_intent: order.intent, ...more })) as { id: string })
    .id
}

function move(dispute: string, outcome: string): Promise<unknown> {
  return scene.books.control('POST', `/disputes/${dispute}`, { outcome })
}

/** All that the provider has notified so far is applied. */
async function settleNews(): Promise<void> {
  await until(async () => {
    await runJobs(deps)
    const events = (await scene.books.control('GET', '/events')) as { data: unknown[] }
    const applied = await scene.db
      .selectFrom('provider_events')
      .select('event_id')
      .where('state', '<>', 'waiting')
      .execute()
    return applied.length === events.data.length
  })
}

async function left(order: Placed): Promise<number> {
  const beyond = await refund(scene.backend, order.id, { amount: 999_999 })
  return beyond.json.refundable
}

describe('a dispute', () => {
  it('draws on the budget from its opening, and is in the ledger once the money is gone', async () => {
    const order = await place(scene)
    await refund(scene.backend, order.id, { amount: 500 })
    await open(order, { amount: 1500 })
    await settleNews()
    expect(await orderShown(scene, order.id)).toMatchObject({
      disputed: true,
      refunded: 500,
      status: 'partially_refunded',
    })
    expect(await left(order)).toBe(500)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, refund: 500, dispute_withdrawn: 1500 })
  })

  it('that is won gives budget and money back; one that is lost keeps both', async () => {
    for (const [outcome, expected] of [
      ['won', { disputed: false, left: 2500, moved: { dispute_withdrawn: 2000, dispute_reinstated: 2000 } }],
      ['lost', { disputed: true, left: 500, moved: { dispute_withdrawn: 2000 } }],
    ] as const) {
      const order = await place(scene)
      const dispute = await open(order, { amount: 2000 })
      await move(dispute, 'under_review')
      await settleNews()
      expect(await left(order)).toBe(500)
      await move(dispute, outcome)
      await settleNews()
      expect((await orderShown(scene, order.id)).disputed).toBe(expected.disputed)
      expect(await left(order)).toBe(expected.left)
      expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, ...expected.moved })
    }
  })

  it('that is an inquiry draws on nothing, until it becomes a dispute', async () => {
    const order = await place(scene)
    const dispute = await open(order, { amount: 2500, status: 'warning_needs_response' })
    await settleNews()
    expect(await orderShown(scene, order.id)).toMatchObject({ disputed: false })
    expect(await left(order)).toBe(2500)
    await move(dispute, 'needs_response')
    await settleNews()
    expect(await orderShown(scene, order.id)).toMatchObject({ disputed: true, status: 'paid' })
    expect(await left(order)).toBe(0)
    const closed = await place(scene)
    await move(await open(closed, { status: 'warning_needs_response' }), 'warning_closed')
    await settleNews()
    expect(await left(closed)).toBe(2500)
    expect(await movedFor(scene, closed.id)).toEqual({ capture: 2500 })
  })

  it('over what has been refunded already uses the budget up and flags the order', async () => {
    const order = await place(scene)
    await refund(scene.backend, order.id, { amount: 2000 })
    const dispute = await open(order, { amount: 2500 })
    await settleNews()
    expect(await orderShown(scene, order.id)).toMatchObject({
      disputed: true,
      refunded: 2000,
      reconcile_reason: 'refunds_exceed_captured',
    })
    expect(await left(order)).toBe(0)
    await move(dispute, 'won')
    await settleNews()
    const shown = await orderShown(scene, order.id)
    expect([shown.disputed, shown.reconcile_reason]).toEqual([false, undefined])
    expect(await left(order)).toBe(500)
  })

  it('that opens at once is applied, also where its news comes before that of the payment', async () => {
    await scene.books.webhooks({ shuffle: true, duplicates: 1 })
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    const reply = await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_createDispute' }))
    expect(reply.status).toBe(202)
    await settleNews()
    await until(async () => {
      await runJobs(deps)
      const shown = await orderShown(scene, reply.json.id)
      return shown.status === 'paid' && shown.disputed
    })
    expect(await movedFor(scene, reply.json.id)).toEqual({ capture: 1250, dispute_withdrawn: 1250 })
    await scene.books.webhooks({})
  })

  it('tells the merchant once, when it opens as more than an inquiry', async () => {
    const order = await place(scene)
    const dispute = await open(order, { status: 'warning_needs_response' })
    await move(dispute, 'needs_response')
    await move(dispute, 'under_review')
    await settleNews()
    const news = await scene.db
      .selectFrom('jobs')
      .select(['business_id', 'payload'])
      .where('topic', '=', 'order_news')
      .where('business_id', 'like', `${order.id}:disputed%`)
      .execute()
    expect(news).toEqual([
      {
        business_id: `${order.id}:disputed:${dispute}`,
        payload: { order_id: order.id, status: 'disputed', dispute_id: dispute },
      },
    ])
  })

  it('in another currency, over nothing, or of another order is a mismatch', async () => {
    const [order, other] = [await place(scene), await place(scene)]
    const now = async ({ id }: Placed) =>
      (await readOrder(scene.db, 'ten_demo', id)) ?? (expect.fail('no order') as never)
    const real = word('charge.dispute.created', 'needs_response', 'du_mismatch')
    expect(await applyDispute(deps, await now(order), { ...real, currency: 'USD' })).toBe('mismatch')
    expect(await applyDispute(deps, await now(order), { ...real, amount: 0 })).toBe('mismatch')
    expect(await applyDispute(deps, await now(order), real)).toBe('applied')
    expect(await applyDispute(deps, await now(other), real)).toBe('mismatch')
    expect(await orderShown(scene, other.id)).toMatchObject({ disputed: false })
  })
})

/** As the provider had it when it notified so. */
function word(type: string, status: string, disputeId: string): ProviderDispute {
  const moved = type.endsWith('withdrawn') ? 'withdrawn' : type.endsWith('reinstated') ? 'reinstated' : null
  return { disputeId, status, moved, amount: 1000, currency: 'EUR' }
}

it('of which older words are applied after later ones, each twice, ends as it ended', async () => {
  for (const { life, disputed, left: rest, moved } of [
    {
      life: disputeLives.won,
      disputed: false,
      left: 2500,
      moved: { dispute_withdrawn: 1000, dispute_reinstated: 1000 },
    },
    { life: disputeLives.lost, disputed: true, left: 1500, moved: { dispute_withdrawn: 1000 } },
    { life: disputeLives['warning closed'], disputed: false, left: 2500, moved: {} },
  ]) {
    const order = await place(scene)
    for (const [type, status] of [...life].reverse().flatMap((piece) => [piece, piece])) {
      const now = await readOrder(scene.db, 'ten_demo', order.id)
      if (now === null) expect.fail('no order')
      await applyDispute(deps, now, word(type, status, `du_${order.id}`))
    }
    expect((await orderShown(scene, order.id)).disputed).toBe(disputed)
    expect(await left(order)).toBe(rest)
    expect(await movedFor(scene, order.id)).toEqual({ capture: 2500, ...moved })
  }
})

it('leaves our books equal to the provider’s', async () => {
  await settleNews()
  await expectBooksInOrder(scene)
})
