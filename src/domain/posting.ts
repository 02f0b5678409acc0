/** Which accounts a business fact moves money between. Booked when the money moves at the provider. */
import { newId } from './ids.ts'

const accounts = {
  /** An order's payment. Business id: the order. */
  capture: { debit: 'provider_balance', credit: 'sales' },
  /** Money that arrived for an order that had ended unpaid. Business id: the payment. */
  late_capture: { debit: 'provider_balance', credit: 'late_payments' },
  /** The same given back. Business id: the payment, numbered where it had to be given back again. */
  late_refund: { debit: 'late_payments', credit: 'provider_balance' },
  /** Such a refund that failed after it was booked. Business id: likewise. */
  late_refund_reversal: { debit: 'provider_balance', credit: 'late_payments' },
  /** Money that does not match its order. Business id: the payment. */
  mismatch: { debit: 'provider_balance', credit: 'suspense' },
  /** A person has decided about such money: it leaves suspense, and is booked again as what it is. Business id: the payment. */
  mismatch_resolved: { debit: 'suspense', credit: 'provider_balance' },
  /** Business id: the refund. */
  refund: { debit: 'refunds', credit: 'provider_balance' },
  /** A refund that failed after it was booked. Business id: the refund. */
  refund_reversal: { debit: 'provider_balance', credit: 'refunds' },
  /** Money that the customer's bank took back. Business id: the dispute. */
  dispute_withdrawn: { debit: 'disputes', credit: 'provider_balance' },
  /** The same given back, as the dispute was won. Business id: the dispute. */
  dispute_reinstated: { debit: 'provider_balance', credit: 'disputes' },
  /** What a metered run used and its hold did not pay for; no money moves. Business id: the run. */
  unbilled: { debit: 'unbilled', credit: 'metered_usage' },
} as const

type TransferKind = keyof typeof accounts

export interface Transfer {
  transfer_id: string
  kind: TransferKind
  business_id: string
  debit_account: string
  credit_account: string
  /** Minor units, more than 0. */
  amount: number
  currency: string
}

export function transfer(kind: TransferKind, businessId: string, amount: number, currency: string): Transfer {
  const { debit, credit } = accounts[kind]
  return {
    transfer_id: newId('tra'),
    kind,
    business_id: businessId,
    debit_account: debit,
    credit_account: credit,
    amount,
    currency,
  }
}
