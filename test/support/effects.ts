/** All that an order has come to, here, at the provider, with the customer and with the merchant, as one value to compare. */
import type { MailServer } from './mail-server.ts'
import { startMailServer } from './mail-server.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import type { Scene } from './scene.ts'

/** Who is told of orders. */
export interface Audience {
  mail: MailServer
  merchant: Receiver
  /** Settings of every process that is to tell them. */
  settings: Record<string, string>
  stop(): Promise<void>
}

/** Amounts in minor units; every list is sorted, and names each thing as often as it has happened. */
export interface Effects {
  status: string
  /** Every step of its life. */
  story: string[]
  /** Of the provider's books. */
  payments: string[]
  refunds: string[]
  disputes: string[]
  /** Of ours. */
  ledger: string[]
  stock: string[]
  refundRows: string[]
  disputeRows: string[]
  /** Each as often as it reached the mail server. */
  mailed: string[]
  /** Each event under its own id; the receiver drops an id that it knows. */
  told: string[]
}

/** Of one paid order for so many mugs, unless it came about otherwise. */
export function paidFor(mugs: number, story = ['pending to paid']): Effects {
  const amount = mugs * 1250
  return {
    status: 'paid',
    story,
    payments: [`${amount} succeeded`],
    refunds: [],
    disputes: [],
    ledger: [`${amount} capture`],
    stock: [`${mugs} reserve`],
    refundRows: [],
    disputeRows: [],
    mailed: ['paid'],
    told: ['order.paid'],
  }
}

export async function startAudience(): Promise<Audience> {
  const [mail, merchant] = [await startMailServer(), await startReceiver()]
  return {
    mail,
    merchant,
    settings: { SMTP_URL: mail.url, MAIL_FROM: 'orders@shop.example', MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true' },
    async stop() {
      await mail.stop()
      await merchant.stop()
    },
  }
}

export async function effectsOf(scene: Scene, audience: Audience, orderId: string): Promise<Effects> {
  const rows = (table: 'refunds' | 'disputes') =>
    scene.db.selectFrom(table).select(['amount', 'status']).where('order_id', '=', orderId).execute()
  const order = await scene.db
    .selectFrom('orders')
    .select('status')
    .where('order_id', '=', orderId)
    .executeTakeFirstOrThrow()
  const story = await scene.db
    .selectFrom('order_transitions')
    .select(['from_status', 'to_status'])
    .where('order_id', '=', orderId)
    .execute()
  const ledger = await scene.db
    .selectFrom('ledger_transfers')
    .select(['kind', 'amount'])
    .where('order_id', '=', orderId)
    .execute()
  const stock = await scene.db
    .selectFrom('stock_movements')
    .select(['kind', 'quantity'])
    .where('order_id', '=', orderId)
    .execute()
  const there = (await scene.books.payments()).filter(({ metadata }) => metadata.order === orderId)
  const line = ({ amount, status }: { amount: number; status: string }) => `${amount} ${status}`
  return {
    status: order.status,
    story: story.map(({ from_status, to_status }) => `${from_status} to ${to_status}`).sort(),
    payments: there.map(({ amount_received, status }) => `${amount_received} ${status}`).sort(),
    refunds: there.flatMap(({ refunds }) => refunds.map(line)).sort(),
    disputes: there.flatMap(({ disputes }) => disputes.map(line)).sort(),
    ledger: ledger.map(({ amount, kind }) => `${amount} ${kind}`).sort(),
    stock: stock.map(({ quantity, kind }) => `${quantity} ${kind}`).sort(),
    refundRows: (await rows('refunds')).map(line).sort(),
    disputeRows: (await rows('disputes')).map(line).sort(),
    mailed: mailedAbout(audience.mail, orderId),
    told: toldAbout(audience.merchant, orderId),
  }
}

/** The message id names the order and the kind. */
function mailedAbout(mail: MailServer, orderId: string): string[] {
  return mail.received
    .map(({ headers }) => headers.get('message-id') ?? '')
    .filter((id) => id.startsWith(`<${orderId}.`))
    .map((id) => id.split('.')[1]?.split('@')[0] ?? id)
    .sort()
}

function toldAbout(merchant: Receiver, orderId: string): string[] {
  const types = new Map<unknown, string>()
  for (const { headers, body } of merchant.received) {
    const { type, data } = JSON.parse(body) as { type: string; data: { order: { id: string } } }
    if (data.order.id === orderId) types.set(headers['webhook-id'], type)
  }
  return [...types.values()].sort()
}
