import { fromProviderAmount } from '../../src/domain/money.ts'
import type { BookedPayment } from '../../src/store/audit.ts'

/** What an audit needs of a payment as the simulator lists it. */
interface ListedPayment {
  id: string
  status: string
  amount: number
  amount_received: number
  amount_capturable: number
  currency: string
  metadata: { tenant?: string; order?: string; key?: string }
  refunds: { amount: number; status: string }[]
}

/** A payment of the simulator's books as an audit takes it, in our minor units. */
export function bookedPayment(payment: ListedPayment): BookedPayment {
  const currency = payment.currency.toUpperCase()
  const ours = (amount: number) => fromProviderAmount(amount, currency)
  const refunds = payment.refunds.filter(({ status }) => status === 'succeeded' || status === 'pending')
  return {
    intentId: payment.id,
    status: payment.status,
    amount: ours(payment.amount),
    amountCaptured: ours(payment.amount_received),
    amountCapturable: ours(payment.amount_capturable),
    amountRefunded: ours(refunds.reduce((sum, { amount }) => sum + amount, 0)),
    currency,
    metadata: payment.metadata,
  }
}
