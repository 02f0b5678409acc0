/** What can have happened at the provider to an order over 1250, and how the order can stand when the news of it comes. */
import type { FaultRule } from '../books.ts'
import { providerCall } from '../notifications.ts'
import { newKey, type Scene } from '../scene.ts'

export const total = 1250

/**
 * How the order stands when the first event comes. `answered`: by the answer of the charge. `lost`: that was lost, and
 * the order does not know its payment. `pending`: whoever charged has died, and its lease goes on. `closed`: it has ended
 * unpaid before any payment appeared.
 */
export type Start = 'answered' | 'lost' | 'pending' | 'closed'

export interface Truth {
  name: string
  /** How the order's payment begins; each with some of the starts. */
  begins: readonly { card: string; capture?: 'manual'; starts: readonly Start[] }[]
  /** What the shop does with the order before the news, and what goes wrong then. */
  ours?: { fault?: FaultRule; act(scene: Scene, order: string): Promise<unknown> }
  /** What happens at the provider. */
  happens(provider: AtProvider): Promise<unknown>
  /** Fields of the payment in events that are older than that. */
  before?: Record<string, unknown>
  end: {
    status: string
    /** Of the payment at the provider. */
    payment: string
    /** Shown to a person. */
    flag?: string
    /** Refunded without any news of refunds. */
    refundedUntold?: number
    /** Jobs that are left, for a person or for the next try. */
    left?: readonly string[]
  }
}

/** The dashboard, the customer, the bank. */
export class AtProvider {
  readonly scene: Scene
  readonly intent: string

  constructor(scene: Scene, intent: string) {
    this.scene = scene
    this.intent = intent
  }

  act(outcome: 'succeed' | 'fail'): Promise<void> {
    return this.scene.books.act(this.intent, outcome)
  }

  /** Where the customer has still to act, they do. */
  async pay(): Promise<void> {
    const { status } = await providerCall(this.scene, 'GET', `payment_intents/${this.intent}`)
    if (status === 'requires_action' || status === 'processing') await this.act('succeed')
  }

  change(what: 'cancel' | 'capture', parameters: Record<string, string> = {}): Promise<unknown> {
    return providerCall(this.scene, 'POST', `payment_intents/${this.intent}/${what}`, parameters)
  }

  lapse(): Promise<unknown> {
    return this.scene.books.control('POST', `/payment_intents/${this.intent}/expire`)
  }

  async refund(amount?: number): Promise<string> {
    const body = { payment_intent: this.intent, ...(amount === undefined ? {} : { amount }) }
    return ((await this.scene.books.control('POST', '/refunds', body)) as { id: string }).id
  }

  refundEnds(id: string, status: 'failed' | 'succeeded'): Promise<unknown> {
    return this.scene.books.control('POST', `/refunds/${id}`, { status })
  }

  async dispute(amount: number, status: 'needs_response' | 'warning_needs_response', ...then: string[]): Promise<void> {
    const body = { payment_intent: this.intent, amount, status }
    const { id } = (await this.scene.books.control('POST', '/disputes', body)) as { id: string }
    for (const outcome of then) await this.scene.books.control('POST', `/disputes/${id}`, { outcome })
  }
}

const secure = 'pm_card_threeDSecure2Required'
const visa = 'pm_card_visa'
const slow = 'pm_card_sim_processing'
const early: readonly Start[] = ['answered', 'lost', 'pending']
const asked = [{ card: secure, starts: early }]
/** Before, while and after the order learns that it is paid. */
const paying = [
  { card: visa, starts: ['answered'] },
  { card: secure, starts: ['lost', 'pending'] },
] as const
const holding = [
  { card: visa, capture: 'manual', starts: ['answered'] },
  { card: secure, capture: 'manual', starts: early },
] as const
const held = { status: 'requires_capture', amount_received: 0, amount_capturable: total }
const paid = { status: 'paid', payment: 'succeeded' }
const late = [{ card: visa, starts: ['closed'] }] as const

export const truths: readonly Truth[] = [
  {
    name: 'paid',
    begins: [...asked, { card: visa, starts: ['answered', 'lost'] }, { card: slow, starts: ['answered', 'pending'] }],
    happens: (at) => at.pay(),
    end: paid,
  },
  {
    name: 'failed with the customer',
    begins: [
      { card: secure, starts: early },
      { card: slow, starts: ['answered'] },
    ],
    happens: (at) => at.act('fail'),
    end: { status: 'payment_failed', payment: 'canceled' },
  },
  {
    name: 'declined',
    begins: [{ card: 'pm_card_chargeDeclined', starts: early }],
    happens: async () => {},
    end: { status: 'payment_failed', payment: 'canceled' },
  },
  {
    name: 'canceled at the dashboard',
    begins: asked,
    happens: (at) => at.change('cancel'),
    end: { status: 'canceled', payment: 'canceled' },
  },
  {
    name: 'waiting for the customer',
    begins: asked,
    happens: async () => {},
    before: { status: 'requires_confirmation' },
    end: { status: 'requires_action', payment: 'requires_action' },
  },
  {
    name: 'processing',
    begins: [{ card: slow, starts: early }],
    happens: async () => {},
    end: { status: 'needs_reconcile', payment: 'processing', flag: 'processing' },
  },
  {
    name: 'authorized',
    begins: holding,
    happens: (at) => at.pay(),
    end: { status: 'authorized', payment: 'requires_capture' },
  },
  {
    name: 'captured in part at the dashboard',
    begins: holding,
    async happens(at) {
      await at.pay()
      await at.change('capture', { amount_to_capture: '1000' })
    },
    before: held,
    end: paid,
  },
  {
    name: 'captured by us, the answer lost',
    begins: [{ card: visa, capture: 'manual', starts: ['answered'] }],
    ours: {
      fault: { method: 'POST', path: '/v1/payment_intents', fault: 'error_after' },
      act: (scene, order) => scene.backend.post(`/v1/orders/${order}/capture`, { amount: 1000 }),
    },
    happens: async () => {},
    before: held,
    end: paid,
  },
  {
    name: 'held and lapsed',
    begins: holding,
    async happens(at) {
      await at.pay()
      await at.lapse()
    },
    before: held,
    end: { status: 'canceled', payment: 'canceled' },
  },
  { name: 'refunded in part', begins: paying, happens: (at) => payAnd(at, () => at.refund(400)), end: paid },
  { name: 'refunded in full', begins: paying, happens: (at) => payAnd(at, () => at.refund()), end: paid },
  {
    name: 'refunded, and the refund has failed',
    begins: paying,
    happens: (at) => payAnd(at, async () => at.refundEnds(await at.refund(400), 'failed')),
    end: paid,
  },
  {
    name: 'refunded twice, of which the first has failed',
    begins: paying,
    happens: (at) =>
      payAnd(at, async () => {
        await at.refundEnds(await at.refund(400), 'failed')
        await at.refund(250)
      }),
    end: paid,
  },
  {
    name: 'captured in part and refunded by what was let go',
    begins: holding,
    async happens(at) {
      await at.pay()
      await at.change('capture', { amount_to_capture: '1000' })
      await at.refund(250)
    },
    before: held,
    end: paid,
  },
  {
    name: 'refunded by us',
    begins: [{ card: visa, starts: ['answered'] }],
    ours: { act: (scene, order) => refundOurs(scene, order) },
    happens: async () => {},
    end: { ...paid, refundedUntold: 400 },
  },
  {
    name: 'refunded by us, the answer lost',
    begins: [{ card: visa, starts: ['answered'] }],
    ours: {
      fault: { method: 'POST', path: '/v1/refunds', fault: 'error_after' },
      act: (scene, order) => refundOurs(scene, order),
    },
    happens: async () => {},
    end: { ...paid, refundedUntold: 400 },
  },
  {
    name: 'refunded by us, and the refund has failed since',
    begins: [{ card: visa, starts: ['answered'] }],
    ours: { act: (scene, order) => refundOurs(scene, order) },
    async happens(at) {
      const [payment] = (await at.scene.books.payments()).filter(({ id }) => id === at.intent)
      await at.refundEnds(payment?.refunds[0]?.id ?? '', 'failed')
    },
    end: { ...paid, refundedUntold: 400 },
  },
  {
    name: 'with an inquiry',
    begins: paying,
    happens: (at) => payAnd(at, () => at.dispute(500, 'warning_needs_response')),
    end: paid,
  },
  {
    name: 'with an inquiry that came to nothing',
    begins: paying,
    happens: (at) => payAnd(at, () => at.dispute(500, 'warning_needs_response', 'warning_closed')),
    end: paid,
  },
  {
    name: 'disputed, the money withdrawn',
    begins: paying,
    happens: (at) => payAnd(at, () => at.dispute(500, 'needs_response')),
    end: paid,
  },
  {
    name: 'disputed after an inquiry, under review',
    begins: paying,
    happens: (at) => payAnd(at, () => at.dispute(total, 'warning_needs_response', 'needs_response', 'under_review')),
    end: paid,
  },
  {
    name: 'disputed and won',
    begins: paying,
    happens: (at) => payAnd(at, () => at.dispute(500, 'needs_response', 'won')),
    end: paid,
  },
  {
    name: 'disputed and lost',
    begins: paying,
    happens: (at) => payAnd(at, () => at.dispute(total, 'needs_response', 'lost')),
    end: paid,
  },
  {
    name: 'refunded in part, the rest disputed',
    begins: paying,
    happens: (at) =>
      payAnd(at, async () => {
        await at.refund(400)
        await at.dispute(850, 'needs_response')
      }),
    end: paid,
  },
  {
    name: 'closed, then paid after all',
    begins: late,
    happens: async () => {},
    end: { status: 'canceled', payment: 'succeeded' },
  },
  {
    name: 'closed, then paid after all and refunded in part',
    begins: late,
    happens: (at) => at.refund(400),
    end: { status: 'canceled', payment: 'succeeded' },
  },
  {
    name: 'closed, then held after all',
    begins: [{ card: visa, capture: 'manual', starts: ['closed'] }],
    happens: async () => {},
    end: { status: 'canceled', payment: 'canceled' },
  },
  {
    name: 'closed, then waiting for the customer after all',
    begins: [{ card: secure, starts: ['closed'] }],
    happens: async () => {},
    end: { status: 'canceled', payment: 'canceled' },
  },
  {
    name: 'closed, then failed with the customer after all',
    begins: [{ card: secure, starts: ['closed'] }],
    happens: (at) => at.act('fail'),
    end: { status: 'canceled', payment: 'canceled' },
  },
]

async function payAnd(at: AtProvider, then: () => Promise<unknown>): Promise<void> {
  await at.pay()
  await then()
}

function refundOurs(scene: Scene, order: string) {
  return scene.backend.post(`/v1/orders/${order}/refunds`, { amount: 400 }, { 'idempotency-key': newKey() })
}
