/** What a shop's customer is told by email, and how. Plain text; one email per order and kind. */
import { formatMinor } from './money.ts'
import type { Order, OrderStatus } from './order.ts'

export type MailKind = 'authorized' | 'paid' | 'payment_failed' | 'canceled' | 'refunded'

/**
 * The email that a transition calls for, or null. Who stands before the page sees a decline or their own cancel there;
 * who was told to wait gets the end of it by email. Runs are a program's work: nobody waits for their emails.
 */
export function mailKindFor(order: Pick<Order, 'kind'>, transition: string, from: OrderStatus | null): MailKind | null {
  if (order.kind === 'run') return null
  switch (transition) {
    case 'authorized':
    case 'paid':
    case 'refunded':
      return transition
    case 'payment_failed':
      return from === 'requires_action' || from === 'needs_reconcile' ? 'payment_failed' : null
    case 'canceled':
      return from === 'authorized' || from === 'needs_reconcile' ? 'canceled' : null
    default:
      return null
  }
}

interface MailText {
  subject: string
  text: string
}

interface MailFacts {
  kind: MailKind
  order: Pick<Order, 'order_id' | 'lines' | 'total' | 'captured' | 'currency'>
  shop: string
  /** As the customer gave it. */
  name: string | null
  /** Minor units given back, where it tells of a refund. */
  amount: number | null
}

/** Says nothing that can change between two sends of one email. */
export function mailText(facts: MailFacts): MailText {
  const { subject, paragraphs } = says(facts)
  const greeting = facts.name === null || !isPlainName(facts.name) ? 'Hello,' : `Hello ${facts.name.trim()},`
  return {
    subject: `${subject} (${oneLine(facts.shop)})`,
    text: [greeting, ...paragraphs, `Order: ${facts.order.order_id}`, oneLine(facts.shop)].join('\n\n').concat('\n'),
  }
}

function says(facts: MailFacts): { subject: string; paragraphs: string[] } {
  const { order } = facts
  const total = formatMinor(order.total, order.currency)
  switch (facts.kind) {
    case 'paid': {
      const paid = formatMinor(order.captured, order.currency)
      return {
        subject: 'Your order is paid',
        paragraphs: [`Thank you for your order. Your payment of ${paid} has been received.`, lines(facts, total)],
      }
    }
    case 'authorized':
      return {
        subject: 'We have received your order',
        paragraphs: [
          `Thank you for your order. ${total} is reserved on your card; you pay when the order goes out.`,
          lines(facts, total),
        ],
      }
    case 'payment_failed':
      return {
        subject: 'Your payment did not succeed',
        paragraphs: [`Your payment of ${total} did not succeed. Nothing was charged; you can order again.`],
      }
    case 'canceled':
      return {
        subject: 'Your order was canceled',
        paragraphs: [`Your order over ${total} was canceled. Nothing was charged; what was reserved is free again.`],
      }
    case 'refunded': {
      const amount = facts.amount === null ? 'Your money' : formatMinor(facts.amount, order.currency)
      return {
        subject: 'Your refund is on its way',
        paragraphs: [
          `${amount} has been refunded to the card that you paid with. It can take a few days to show up there.`,
        ],
      }
    }
  }
}

function lines({ order }: MailFacts, total: string): string {
  const each = order.lines.map(
    ({ quantity, name, amount }) => `${quantity} × ${oneLine(name)}: ${formatMinor(amount, order.currency)}`,
  )
  return [...each, `Total: ${total}`].join('\n')
}

/** Anybody may have an email sent to anybody, with a name of their choice: it is repeated only where it can be nothing but
 * a name, and neither an address that mail programs turn into a link nor a message. */
function isPlainName(name: string): boolean {
  return /^(?!.*\.[\p{L}\p{M}]{2})[\p{L}\p{M}' ’.-]{1,60}$/u.test(name.trim())
}

/** Names come from others: a line break in one must not look like a line of ours. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()
}
