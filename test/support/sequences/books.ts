/** What the provider's books call for, and what an order has come to, in the same terms. */
import type { BookedPayment } from '../books.ts'
import type { Told } from './letters.ts'
import type { Rows } from './rows.ts'
import { type Truth, total } from './truths.ts'

interface Standing {
  status: string
  captured: number
  refunded: number
  disputed: number
  /** Units that the order keeps of the stock: by its own movements, and by the stock. */
  taken: { moved: number; missing: number }
  /** Balance by account, minor units; none that is 0. */
  ledger: Record<string, number>
  /** Jobs that are left. */
  left: string[]
  flag: string | null
}

/** As many as each order's SKU has before the order. */
export const stockBefore = 10

/** `told`: what of it any event has been about. */
export function callsFor(truth: Truth, payment: BookedPayment, told: ReadonlySet<Told>): Standing {
  const { end } = truth
  const refunds = payment.refunds.filter(({ status }) => status !== 'failed')
  const wentBack = refunds.reduce((sum, { amount }) => sum + amount, 0)
  // Kept by the bank, for the time being or for good.
  const disputed = payment.disputes
    .filter(({ status }) => ['needs_response', 'under_review', 'lost'].includes(status))
    .reduce((sum, { amount }) => sum + amount, 0)
  const flag = end.flag ?? null
  const left = [...(end.left ?? [])]
  if (isClosed(truth)) {
    const kept = payment.amount_received - wentBack
    const ledger = balances({ provider_balance: kept, late_payments: -kept })
    return { ...nothing, status: end.status, ledger, left, flag }
  }
  if (end.status === 'paid') {
    const captured = payment.amount_received
    const refunded = told.has('refunds') ? wentBack : (end.refundedUntold ?? 0)
    const withdrawn = told.has('disputes') ? disputed : 0
    const ledger = balances({
      provider_balance: captured - refunded - withdrawn,
      sales: -captured,
      refunds: refunded,
      disputes: withdrawn,
    })
    return { ...nothing, status: 'paid', captured, refunded, disputed: withdrawn, taken: all, ledger, left, flag }
  }
  const isOver = end.status === 'canceled' || end.status === 'payment_failed'
  return { ...nothing, status: end.status, taken: isOver ? none : all, ledger: {}, left, flag }
}

const none = { moved: 0, missing: 0 }
const all = { moved: 1, missing: 1 }
const nothing = { captured: 0, refunded: 0, disputed: 0, taken: none }

function isClosed({ begins }: Truth): boolean {
  return begins.some(({ starts }) => starts.includes('closed'))
}

export function standingOf(rows: Rows): Standing {
  const order = rows.orders?.[0] ?? {}
  const moved: Record<string, number> = {}
  for (const { debit_account, credit_account, amount } of rows.ledger_transfers ?? []) {
    moved[debit_account] = (moved[debit_account] ?? 0) + amount
    moved[credit_account] = (moved[credit_account] ?? 0) - amount
  }
  const units = (rows.stock_movements ?? []).map(({ kind, quantity }) => (kind === 'reserve' ? quantity : -quantity))
  // What is told to others of an order is no part of it; and news of what cannot have been yet is kept for a day.
  const left = (rows.jobs ?? [])
    .filter(
      ({ topic, state, last_error }) =>
        topic !== 'order_news' && state !== 'done' && !tooEarly(order.status).includes(last_error),
    )
    .map(({ topic, state, last_error }) => `${topic} ${state} ${last_error}`)
  return {
    status: order.status,
    captured: order.captured,
    refunded: order.refunded,
    disputed: order.disputed_amount,
    taken: {
      moved: units.reduce((sum, quantity) => sum + quantity, 0),
      missing: stockBefore - (rows.products?.[0]?.available ?? Number.NaN),
    },
    ledger: balances(moved),
    left,
    flag: order.reconcile_reason,
  }
}

/** Why news that money went back waits, where none has come yet. */
function tooEarly(status: string): string[] {
  return status === 'authorized' ? ['not_answered'] : ['order_open', 'processing']
}

function balances(accounts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(accounts)
      .filter(([, balance]) => balance !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}

/** No status is entered twice but those that wait, and a paid order is told once. */
export function enteredTwice(rows: Rows): string[] {
  const entered = (rows.order_transitions ?? []).map(({ to_status }) => to_status as string)
  const final = ['paid', 'authorized', 'canceled', 'payment_failed']
  return final.filter((status) => entered.filter((each) => each === status).length > 1)
}

/** The price of the one unit. */
export const price = total
