/** One payment in two sets of books: what is kept or held of it by ours and by the provider's. */
import type { Order } from './order.ts'

export type FindingKind = 'missing_here' | 'missing_there' | 'amount_differs'

/** Minor units of the payment's currency. */
interface Comparison {
  kind: 'matched' | Exclude<FindingKind, 'missing_there'>
  ours: number
  theirs: number
}

export type OrderInBooks = Pick<Order, 'order_id' | 'status' | 'currency' | 'total' | 'intent_id'>

export interface TransferInBooks {
  kind: string
  business_id: string
  debit_account: string
  credit_account: string
  amount: number
  currency: string
}

interface PaymentInBooks {
  intentId: string
  amountCaptured: number
  amountCapturable: number
  amountRefunded: number
  currency: string
}

/** `order` is the one that the payment's metadata names, null where we have none; `transfers` are the order's. */
export function comparePayment(
  payment: PaymentInBooks,
  order: OrderInBooks | null,
  transfers: readonly TransferInBooks[],
): Comparison {
  const theirs = payment.amountCaptured - payment.amountRefunded + payment.amountCapturable
  const ours = order === null ? 0 : oursOf(order, transfers, payment.intentId, payment.currency)
  if (ours === theirs) return { kind: 'matched', ours, theirs }
  return { kind: ours === 0 ? 'missing_here' : 'amount_differs', ours, theirs }
}

/** What our books have of a payment: the ledger's part of the provider's balance, and the hold of an authorized order.
 * Disputes are left out: a payment does not tell of them. */
export function oursOf(
  order: OrderInBooks,
  transfers: readonly TransferInBooks[],
  intentId: string,
  currency: string,
): number {
  const isOwn = intentId === order.intent_id
  let sum = isOwn && order.status === 'authorized' && order.currency === currency ? order.total : 0
  for (const transfer of transfers) {
    if (transfer.kind.startsWith('dispute') || transfer.currency !== currency) continue
    // Money that no order waited for is booked by its payment, all other by what the order lives on.
    const isAboutPayment = /^(late_|mismatch)/.test(transfer.kind)
    if (isAboutPayment ? transfer.business_id !== intentId : !isOwn) continue
    if (transfer.debit_account === 'provider_balance') sum += transfer.amount
    if (transfer.credit_account === 'provider_balance') sum -= transfer.amount
  }
  return sum
}
