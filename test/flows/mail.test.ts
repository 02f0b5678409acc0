import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sendEmail } from '../../src/flows/news/mail.ts'
import { decideEmailWasSent, listEmailsToDecide, sendEmailAgain } from '../../src/store/emails.ts'
import { requeueJob } from '../../src/store/jobs.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { type Topic, topics } from '../../src/workers/topics.ts'
import { cart } from '../support/client.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let mail: MailServer
let scene: Scene
beforeAll(async () => {
  mail = await startMailServer()
  scene = await startScene({
    settings: {
      SMTP_URL: mail.url,
      MAIL_FROM: 'Demo shop <orders@shop.example>',
      CHECKOUT_BUDGET_MS: '4000',
      PROVIDER_TIMEOUT_MS: '2000',
    },
  })
})
afterAll(async () => {
  await scene.stop()
  await mail.stop()
})
beforeEach(async () => {
  await runJobs(scene.service.deps)
  mail.received.length = 0
  mail.faults.length = 0
})

async function order(body: Record<string, unknown> = {}) {
  return (await scene.shop.checkout(newKey(), cart(body))).json
}

const work = () => runJobs(scene.service.deps)

/** As if the pause after a failure had passed. */
async function passTime(): Promise<void> {
  await scene.db
    .updateTable('jobs')
    .set({ run_at: new Date(0) })
    .where('state', '=', 'ready')
    .execute()
}

function emails(orderId: string) {
  return scene.db
    .selectFrom('emails')
    .select(['kind', 'state', 'reason'])
    .where('order_id', '=', orderId)
    .orderBy('kind')
    .execute()
}

function sendJob(orderId: string, kind = 'paid') {
  return scene.db
    .selectFrom('jobs')
    .select(['state', 'last_error'])
    .where('topic', '=', 'send_email')
    .where('business_id', '=', `${orderId}:${kind}`)
    .executeTakeFirst()
}

/** News of a status that the order has, as its settlement writes it. */
async function news(payload: { order_id: string; status: string; refund_id?: string }): Promise<void> {
  await scene.db
    .insertInto('jobs')
    .values({
      tenant_id: 'ten_demo',
      topic: 'order_news',
      business_id: [payload.order_id, payload.status, payload.refund_id].filter((part) => part !== undefined).join(':'),
      payload,
      lease_token: null,
      last_error: null,
      finished_at: null,
    })
    .execute()
}

describe('the email that confirms an order', () => {
  it('goes to the customer once, with what was bought and paid', async () => {
    const { id } = await order({
      items: [
        { sku: 'mug', quantity: 2 },
        { sku: 'poster', quantity: 1 },
      ],
      customer: { email: 'ada@example.com', name: 'Ada' },
    })
    await work()
    expect(mail.received).toHaveLength(1)
    const [message] = mail.received
    expect(message?.from).toBe('orders@shop.example')
    expect(message?.to).toEqual(['ada@example.com'])
    expect(message?.headers.get('subject')).toBe('Your order is paid (Demo shop)')
    expect(message?.headers.get('message-id')).toBe(`<${id}.paid@shop.example>`)
    expect(message?.headers.get('auto-submitted')).toBe('auto-generated')
    expect(message?.text.trim().split('\r\n')).toEqual([
      'Hello Ada,',
      '',
      'Thank you for your order. Your payment of 34.00 EUR has been received.',
      '',
      '2 × Mug: 25.00 EUR',
      '1 × Poster: 9.00 EUR',
      'Total: 34.00 EUR',
      '',
      `Order: ${id}`,
      '',
      'Demo shop',
    ])
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'sent', reason: null }])

    await requeueJob(scene.db, 'ten_demo', 'send_email', `${id}:paid`)
    await requeueJob(scene.db, 'ten_demo', 'order_news', `${id}:paid`)
    await work()
    expect(mail.received).toHaveLength(1)
  })

  it('is not sent of a decline that the customer has seen, but of one that came while they waited', async () => {
    const declined = await order({ payment_method: 'pm_card_chargeDeclined' })
    await work()
    expect(await emails(declined.order_id)).toEqual([])
    const waiting = await order({ payment_method: 'pm_card_threeDSecure2Required' })
    await scene.books.act(waiting.payment.reference, 'fail')
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(0) })
      .where('order_id', '=', waiting.id)
      .execute()
    await recoverOrders(scene.service.deps)
    await work()
    expect(await emails(waiting.id)).toEqual([{ kind: 'payment_failed', state: 'sent', reason: null }])
    expect(mail.received.at(-1)?.text).toContain('Nothing was charged')
  })

  it('is tried again where the mail server refuses it for the moment', async () => {
    mail.faults.push({ refuse: 451 })
    const { id } = await order()
    await work()
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'waiting', reason: 'smtp_refused' }])
    expect(await sendJob(id)).toEqual({ state: 'ready', last_error: 'smtp_refused' })
    await passTime()
    await work()
    expect(mail.received).toHaveLength(1)
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'sent', reason: null }])
  })

  it('is given up where the mail server refuses it for good, until a person requeues it', async () => {
    mail.faults.push({ refuse: 550 })
    const { id } = await order()
    await work()
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'failed', reason: 'smtp_refused' }])
    expect(await sendJob(id)).toEqual({ state: 'dead', last_error: 'smtp_refused' })
    await requeueJob(scene.db, 'ten_demo', 'send_email', `${id}:paid`)
    await work()
    expect(mail.received).toHaveLength(1)
  })

  it('is never sent a second time by itself where the mail server took it without a word', async () => {
    mail.faults.push('vanish')
    const { id } = await order()
    await work()
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'uncertain', reason: 'smtp_no_answer' }])
    expect(await sendJob(id)).toEqual({ state: 'dead', last_error: 'email_uncertain' })
    await requeueJob(scene.db, 'ten_demo', 'send_email', `${id}:paid`)
    await work()
    expect(mail.received).toHaveLength(1)
    const page = { limit: 100, after: null }
    expect(await listEmailsToDecide(scene.db, 'ten_demo', page)).toMatchObject([
      { order_id: id, kind: 'paid', state: 'uncertain' },
    ])

    expect(await decideEmailWasSent(scene.db, 'ten_demo', id, 'paid')).toMatchObject({ state: 'sent' })
    expect(await listEmailsToDecide(scene.db, 'ten_demo', page)).toEqual([])
    expect(await sendJob(id)).toMatchObject({ state: 'discarded' })
    expect(await decideEmailWasSent(scene.db, 'ten_demo', id, 'paid')).toBeNull()
  })

  it('is sent again where a person decides so', async () => {
    mail.faults.push('vanish')
    const { id } = await order()
    await work()
    expect(await sendEmailAgain(scene.db, 'ten_demo', id, 'paid')).toMatchObject({ state: 'waiting' })
    await work()
    expect(mail.received).toHaveLength(2)
    expect(new Set(mail.received.map(({ headers }) => headers.get('message-id')))).toEqual(
      new Set([`<${id}.paid@shop.example>`]),
    )
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'sent', reason: null }])
  })

  it.each([
    ['in doubt', 'vanish' as const],
    ['refused', { refuse: 550 }],
  ])(
    'is sent again, or left, as a person decides while the worker of one that is %s is about to give its job up',
    async (_what, fault) => {
      const deciding = (decide: typeof sendEmailAgain): Record<string, Topic> => ({
        ...topics,
        send_email: {
          ...(topics.send_email as Topic),
          run: async (deps, run) => {
            try {
              return await sendEmail(deps, run)
            } catch (error) {
              await decide(deps.db, run.job.tenantId, run.job.payload.order_id as string, 'paid')
              throw error
            }
          },
        } as Topic,
      })
      mail.faults.push(fault)
      const again = await order()
      await runJobs(scene.service.deps, undefined, deciding(sendEmailAgain))
      await work()
      expect(await emails(again.id)).toEqual([{ kind: 'paid', state: 'sent', reason: null }])
      expect(await sendJob(again.id)).toEqual({ state: 'done', last_error: null })

      mail.faults.push(fault)
      const left = await order()
      await runJobs(scene.service.deps, undefined, deciding(decideEmailWasSent))
      await work()
      expect(await emails(left.id)).toEqual([{ kind: 'paid', state: 'sent', reason: 'decided_by_hand' }])
      expect(await sendJob(left.id)).toMatchObject({ state: 'discarded' })
    },
  )

  it('does not wait for ever: once its job is given up, a person decides', async () => {
    mail.faults.push({ refuse: 451 })
    const { id } = await order()
    await runJobs(scene.service.deps, undefined, {
      ...topics,
      send_email: { ...(topics.send_email as Topic), pauseMs: (failures) => (failures >= 1 ? null : 0) },
    })
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'failed', reason: 'smtp_refused' }])
    expect(await sendJob(id)).toEqual({ state: 'dead', last_error: 'smtp_refused' })
    expect(await listEmailsToDecide(scene.db, 'ten_demo', { limit: 100, after: null })).toMatchObject([
      { order_id: id },
    ])

    // Discarded, it is put aside; requeued, it is sent after all.
    const job = `/v1/admin/jobs/send_email:${id}:paid`
    expect((await scene.admin.post(`${job}/discard`)).json.state).toBe('discarded')
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'skipped', reason: 'job_discarded' }])
    await work()
    expect(mail.received).toEqual([])
    expect((await scene.admin.post(`${job}/requeue`)).json.state).toBe('ready')
    await work()
    expect(mail.received).toHaveLength(1)
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'sent', reason: null }])
    expect((await scene.admin.post(`${job}/discard`)).status).toBe(409)
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'sent', reason: null }])
  })

  it('waits where the mail server is away', async () => {
    const away = await scene.start({ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'orders@shop.example' })
    const { id } = await order()
    await runJobs(away.deps)
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'waiting', reason: 'smtp_unreachable' }])
    await passTime()
    await work()
    expect(mail.received).toHaveLength(1)
  })

  it('is uncertain where the mail server does not answer in time', async () => {
    mail.faults.push('hang')
    const { id } = await order()
    await work()
    expect(await emails(id)).toEqual([{ kind: 'paid', state: 'uncertain', reason: 'smtp_timeout' }])
  })

  it('is skipped, and kept as skipped, where no mail server is set or the address has been erased', async () => {
    const without = await scene.start()
    const first = await order()
    await runJobs(without.deps)
    expect(await emails(first.id)).toEqual([{ kind: 'paid', state: 'skipped', reason: 'no_smtp' }])
    const second = await order({ customer: { email: 'erased@example.com' } })
    await scene.db
      .updateTable('customers')
      .set({ email: null, name: null })
      .where('customer_id', '=', second.customer_id)
      .execute()
    await work()
    expect(await emails(second.id)).toEqual([{ kind: 'paid', state: 'skipped', reason: 'no_address' }])
    expect(mail.received).toEqual([])
  })
})

describe('every transition of an order', () => {
  it('has its own email: paid, then two refunds within a minute', async () => {
    const { id } = await order({ items: [{ sku: 'tee', quantity: 2 }] })
    await work()
    for (const [refund_id, amount] of [
      ['ref_1', 1000],
      ['ref_2', 1500],
    ] as const) {
      await scene.db
        .insertInto('refunds')
        .values({
          tenant_id: 'ten_demo',
          refund_id,
          order_id: id,
          attempt_key: null,
          amount,
          currency: 'EUR',
          reason: null,
          status: 'succeeded',
          provider_refund_id: `re_${refund_id}`,
          last_send_before: new Date(),
          next_ask_at: new Date(),
        })
        .execute()
      await news({ order_id: id, status: 'refunded', refund_id })
    }
    await work()
    expect(
      mail.received.map(
        ({ text }) => /[\d.]+ EUR has been (received|refunded)|of ([\d.]+ EUR) has been received/.exec(text)?.[0],
      ),
    ).toEqual([
      expect.stringContaining('50.00 EUR'),
      expect.stringMatching(/1[05]\.00 EUR has been refunded/),
      expect.stringMatching(/1[05]\.00 EUR has been refunded/),
    ])
    expect((await emails(id)).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
      'paid sent',
      'refunded:ref_1 sent',
      'refunded:ref_2 sent',
    ])
  })
})
