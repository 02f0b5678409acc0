/** A process dies by SIGKILL with requests stranded at every step of placing, using and ending runs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { expectKilledAtEachStep } from '../chaos/steps.ts'
import { endLease, makeDue } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import type { BookedPayment } from '../support/books.ts'
import type { Client } from '../support/client.ts'
import { activeRun, endOfRun, finalize, hold, makeRunDue, startRun, use } from '../support/runs.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
  await scene.backend.put('/v1/meters/cents', { price: 1, per: 1, currency: 'EUR' })
})
afterAll(async () => {
  await expectBooksInOrder(scene)
  await scene.stop()
})

interface Stranded {
  point: string
  send(client: Client): Promise<unknown>
}

/** One process gets all the requests, each stops at its point, and then it is killed. */
async function strandAndKill(requests: Stranded[]): Promise<void> {
  const doomed = await startServiceProcess(scene.env())
  const client = scene.backend.at(doomed.url)
  const passes = new Map<string, number>()
  const lost: Promise<string>[] = []
  for (const { point, send } of requests) {
    await doomed.arm({ [point]: { do: 'pause' } })
    lost.push(
      send(client).then(
        () => 'answered',
        () => 'lost',
      ),
    )
    const times = (passes.get(point) ?? 0) + 1
    passes.set(point, times)
    await doomed.reached(point, times)
  }
  await doomed.kill()
  expect(await Promise.all(lost)).toEqual(requests.map(() => 'lost'))
}

describe('a process that is killed while it places a hold', () => {
  const points = ['checkout.claimed', 'checkout.charged', 'settle.deciding_authorized', 'settle.decided_authorized']
  const keysOf = () => new Map(points.map((point) => [point, newKey()]))
  const repeated = keysOf()
  const recovered = keysOf()

  beforeAll(() =>
    strandAndKill(
      [...repeated, ...recovered].map(([point, key]) => ({ point, send: (client) => startRun(client, key) })),
    ),
  )

  it.each([...repeated])('at %s: the next repeat finishes it, with one hold', async (_point, key) => {
    await endLease(scene.db, key)
    const repeat = await startRun(scene.backend, key)
    expect([repeat.status, repeat.json.status]).toEqual([201, 'active'])
    expect((await startRun(scene.backend, key)).text).toBe(repeat.text)
    expect(await paymentOf(key)).toMatchObject({ status: 'requires_capture', amount_capturable: 1000 })
  })

  it.each([...recovered])('at %s: recovery finishes it, with one hold', async (_point, key) => {
    const order = await until(
      async () => {
        await endLease(scene.db, key)
        await makeDue(scene.db, key)
        await recoverOrders(scene.service.deps)
        return scene.db
          .selectFrom('orders')
          .select('order_id')
          .where('attempt_key', '=', key)
          .where('status', '=', 'authorized')
          .executeTakeFirst()
      },
      { what: 'recovery to place the hold' },
    )
    const repeat = await startRun(scene.backend, key)
    expect([repeat.status, repeat.replayed, repeat.json.order_id]).toEqual([201, true, order.order_id])
    expect(await paymentOf(key)).toMatchObject({ status: 'requires_capture', amount_capturable: 1000 })
  })
})

describe('a process that is killed while it records usage', () => {
  const points: [point: string, status: number][] = [
    ['usage.priced', 201],
    ['usage.recorded', 200],
  ]
  const runs = new Map<string, string>()

  beforeAll(async () => {
    for (const [point] of points) runs.set(point, await activeRun(scene.backend))
    await strandAndKill(
      [...runs].map(([point, runId]) => ({ point, send: (client) => use(client, runId, 'cents', 40) })),
    )
  })

  it.each(points)('at %s: the repeat is answered with %i, and the line is there once', async (point, status) => {
    const runId = runs.get(point) as string
    const repeat = await use(scene.backend, runId, 'cents', 40)
    expect([repeat.status, repeat.json.used_amount]).toEqual([status, 40])
    expect((await use(scene.backend, runId, 'cents', 40)).text).toBe(repeat.text)
    expect((await scene.backend.get(`/v1/runs/${runId}`)).json.usage).toEqual([
      { meter_type: 'cents', quantity: 40, amount: 40 },
    ])
  })
})

const before = ['run.closed', 'hold.decided', 'hold.ending', 'hold.asked']
const after = ['hold.ended', 'run.hold_ended', 'run.finished']
const capturePoints = [...before, 'settle.deciding_paid', 'settle.decided_paid', ...after]
const cancelPoints = [...before, 'settle.deciding_canceled', 'settle.decided_canceled', ...after]

describe('a process that is killed while it finalizes a run', () => {
  interface Doomed {
    key: string
    runId: string
  }
  const goneOn = new Map<string, Doomed>()
  const repeated = new Map<string, Doomed>()
  const unused = new Map<string, Doomed>()

  beforeAll(async () => {
    for (const point of capturePoints) {
      goneOn.set(point, await usedRun(140))
      repeated.set(point, await usedRun(90))
    }
    for (const point of cancelPoints) unused.set(point, await usedRun(0))
    await strandAndKill(
      [...goneOn, ...repeated, ...unused].map(([point, { runId }]) => ({
        point,
        send: (client) => finalize(client, runId),
      })),
    )
  })

  async function usedRun(amount: number): Promise<Doomed> {
    const key = newKey()
    const runId = await activeRun(scene.backend, key, hold({ hold_amount: 100 }))
    if (amount > 0) await use(scene.backend, runId, 'cents', amount)
    return { key, runId }
  }

  it.each(capturePoints)('at %s: workers capture once, and the excess is unbilled once', async (point) => {
    const { key, runId } = goneOn.get(point) as Doomed
    const late = await use(scene.backend, runId, 'input_tokens', 1_000_000)
    expect([late.status, late.json.code]).toEqual([409, 'run_closed'])
    const end = await endOfRun(scene, runId)
    expect(end.json).toMatchObject({ status: 'finalized', used_amount: 140, captured: 100 })
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 100 })
    expect(await unbilledOf(runId)).toEqual([40])
  })

  it.each(capturePoints)('at %s: the repeat alone ends it once nobody is at it any more', async (point) => {
    const { key, runId } = repeated.get(point) as Doomed
    await scene.db
      .updateTable('hold_endings')
      .set({ next_ask_at: new Date(0) })
      .where('order_id', '=', runId.replace('run_', 'ord_'))
      .execute()
    const end = await finalize(scene.backend, runId)
    expect(end.status).toBe(200)
    expect(end.json).toMatchObject({ status: 'finalized', used_amount: 90, captured: 90 })
    expect((await finalize(scene.backend, runId)).text).toBe(end.text)
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 90 })
  })

  it.each(cancelPoints)('of which nothing was used, at %s: the hold is let go', async (point) => {
    const { key, runId } = unused.get(point) as Doomed
    const end = await endOfRun(scene, runId)
    expect(end.json).toMatchObject({ status: 'finalized', used_amount: 0, captured: 0 })
    expect(await paymentOf(key)).toMatchObject({ status: 'canceled', amount_received: 0, amount_capturable: 0 })
  })
})

describe('a worker that is killed while it ends an expired run', () => {
  it.each(['run.closed', 'hold.asked', 'run.hold_ended'])('at %s: the next one captures once', async (point) => {
    const key = newKey()
    const runId = await activeRun(scene.backend, key, hold({ hold_amount: 100 }))
    await use(scene.backend, runId, 'cents', 140)
    await makeRunDue(scene.db, runId)
    const doomed = await startServiceProcess(scene.env({ ROLES: 'worker' }), { [point]: { do: 'kill' } })
    await doomed.gone
    const end = await endOfRun(scene, runId)
    expect(end.json).toMatchObject({ status: 'expired', used_amount: 140, captured: 100 })
    expect(await paymentOf(key)).toMatchObject({ status: 'succeeded', amount_received: 100 })
    expect(await unbilledOf(runId)).toEqual([40])
  })
})

async function paymentOf(key: string): Promise<BookedPayment> {
  const payments = await scene.books.paymentsFor(key)
  expect(payments).toHaveLength(1)
  return payments[0] as BookedPayment
}

async function unbilledOf(runId: string): Promise<number[]> {
  const rows = await scene.db
    .selectFrom('ledger_transfers')
    .select('amount')
    .where('order_id', '=', runId.replace('run_', 'ord_'))
    .where('kind', '=', 'unbilled')
    .execute()
  return rows.map(({ amount }) => amount)
}

expectKilledAtEachStep(import.meta.filename)
