/** Workers as processes of their own: killed at each step of each handler, and two of them at once. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { expectKilledAtEachStep } from '../chaos/steps.ts'
import { orderOf } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart } from '../support/client.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let mail: MailServer
let merchant: Receiver
let scene: Scene
let settings: Record<string, string>
const processes: ServiceProcess[] = []

beforeAll(async () => {
  mail = await startMailServer()
  merchant = await startReceiver()
  settings = { SMTP_URL: mail.url, MAIL_FROM: 'orders@shop.example', MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true' }
  scene = await startScene({ settings })
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
})
afterAll(async () => {
  await scene.stop()
  await mail.stop()
  await merchant.stop()
})
beforeEach(() => {
  mail.received.length = 0
  merchant.received.length = 0
})
afterEach(async () => {
  await Promise.all(processes.splice(0).map((each) => each.kill()))
})

async function startWorker(point?: string): Promise<ServiceProcess> {
  const worker = await startServiceProcess(
    scene.env({ ...settings, ROLES: 'api,worker', WORKER_POLL_MS: '20' }),
    point === undefined ? {} : { [point]: { do: 'kill' } },
  )
  processes.push(worker)
  return worker
}

/** Another worker finishes what is left, as soon as the leases of the dead one have ended. */
async function finish(): Promise<void> {
  await until(async () => {
    await scene.db
      .updateTable('jobs')
      .set({ run_at: new Date(0) })
      .where('state', '=', 'ready')
      .execute()
    return (await runJobs(scene.service.deps)) === 0
  })
}

function ledger(orderId: string) {
  return scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount'])
    .where('order_id', '=', orderId)
    .orderBy('created_at')
    .execute()
}

describe('after a worker was killed, another one makes sure that', () => {
  it.each([
    ['jobs.taken', 1, 'sent'],
    ['order_news.read', 1, 'sent'],
    ['order_news.written', 1, 'sent'],
    ['order_news.spread', 1, 'sent'],
    // Nobody can know whether it went out; it is not sent a second time.
    ['mail.claimed', 0, 'uncertain'],
    ['mail.sent', 1, 'uncertain'],
    ['mail.marked', 1, 'sent'],
    ['merchant_events.delivering', 1, 'sent'],
    ['merchant_events.delivered', 1, 'sent'],
    ['merchant_events.recorded', 1, 'sent'],
  ])('customer and merchant are told once (killed at %s)', async (point, mails, state) => {
    const worker = await startWorker(point)
    const { id } = (await scene.shop.checkout(newKey(), cart())).json
    await worker.gone
    await finish()
    const emails = await scene.db.selectFrom('emails').select(['kind', 'state']).where('order_id', '=', id).execute()
    if (point.startsWith('merchant_events') && emails[0]?.state === 'uncertain') {
      // The email was on its way when the delivery killed its process.
      expect(mail.received.length).toBeLessThanOrEqual(1)
    } else {
      expect(mail.received).toHaveLength(mails)
      expect(emails).toEqual([{ kind: 'paid', state }])
    }
    expect(new Set(merchant.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    const events = await scene.db.selectFrom('merchant_events').select('type').where('order_id', '=', id).execute()
    expect(events).toEqual([{ type: 'order.paid' }])
  })

  it.each(['jobs.taken', 'closing.asked', 'late_money.refunding', 'late_money.asked', 'jobs.handled'])(
    'late money is given back once and booked (killed at %s)',
    async (point) => {
      const key = newKey()
      await scene.shop.checkout(key, cart({ payment_method: 'pm_card_chargeDeclined' }))
      const order = await orderOf(scene.db, key)
      await fetch(`${scene.simulatorUrl}/v1/payment_intents/${order.intent_id}/confirm`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk_test_scene' },
        body: new URLSearchParams({ payment_method: 'pm_card_visa' }),
      })
      const worker = await startWorker(point)
      await worker.gone
      await finish()
      const [payment] = await scene.books.paymentsFor(key)
      expect(payment?.refunds).toMatchObject([{ amount: 1250, status: 'succeeded' }])
      expect(await ledger(order.order_id)).toEqual([
        { kind: 'late_capture', amount: 1250 },
        { kind: 'late_refund', amount: 1250 },
      ])
      expect((await orderOf(scene.db, key)).status).toBe('payment_failed')
    },
  )

  it('the books agree', async () => {
    await finish()
    await expectBooksInOrder(scene)
  })
})

describe('two workers at once', () => {
  it('tell each customer and each merchant once', async () => {
    await Promise.all([startWorker(), startWorker()])
    const count = 40
    const ids = await Promise.all(
      Array.from({ length: count }, async () => (await scene.shop.checkout(newKey(), cart())).json.id as string),
    )
    await until(async () => {
      const open = await scene.db.selectFrom('jobs').select('business_id').where('state', '=', 'ready').execute()
      return open.length === 0 && mail.received.length >= count && merchant.received.length >= count
    })
    const mailed = mail.received.map(({ headers }) => headers.get('message-id'))
    expect(mailed.toSorted()).toEqual(ids.map((id) => `<${id}.paid@shop.example>`).toSorted())
    const told = merchant.received.map(({ body }) => JSON.parse(body).data.order.id)
    expect(told.toSorted()).toEqual(ids.toSorted())
  })
})

expectKilledAtEachStep(import.meta.filename)
