/**
 * What two orders have to have in common so that every further notification does the same to both. Equal snapshots are
 * taken as one state, so all that is left out here has to be of no consequence:
 *
 *   ids                     stand for themselves only: each is replaced by what it names, so that what points where stays
 *   times                   when the provider may next be asked bounds recovery alone, notifications ask at once; leases
 *                           are here as held or not; expiry, absence and lapsed holds are hours away from every sequence
 *   counts of asks, tries   they make pauses longer, and a job dies after a day of them
 *   events                  their rows are read by their own handling alone, and an event that has to be tried again has
 *                           done nothing so far: handling it later is as if it came later, in a longer sequence
 *   history                 transitions and provider calls are written and never read by the handling
 *   the stored answer       is written once, by the step that settles the attempt, and read by repeats of the request alone;
 *                           that it is there, and its status, is kept
 *
 * Sequences that are run without any merging have to come to the same snapshots, which guards this list.
 */
import type { BookedPayment } from '../books.ts'
import type { Row, Rows } from './rows.ts'

const ofOrder = [
  'status',
  'intent_id',
  'charge_id',
  'payment_status',
  'decline_code',
  'captured',
  'refunded',
  'disputed',
  'disputed_amount',
  'maybe_sent',
  'send_is_pointless',
  'reconcile_reason',
]
const ofTransfer = ['kind', 'business_id', 'debit_account', 'credit_account', 'amount', 'currency']
const ofRefund = [
  'refund_id',
  'provider_refund_id',
  'amount',
  'currency',
  'status',
  'doubt',
  'failure_code',
  'maybe_sent',
  'send_is_pointless',
]
const ofDispute = ['dispute_id', 'amount', 'currency', 'status', 'withdrawn', 'reinstated', 'counts']
const ofJob = ['topic', 'business_id', 'payload', 'state', 'last_error']

/** Equal for states that are one. */
export function snapshotOf(rows: Rows, books: readonly BookedPayment[]): string {
  const named = namesIn(rows, books)
  const of = (table: string, columns: readonly string[], more: (row: Row) => object = () => ({})) =>
    (rows[table] ?? []).map((row) => JSON.stringify({ ...pick(row, columns), ...more(row) })).map(named)
  const jobs = (rows.jobs ?? []).filter(({ topic }) => topic !== 'provider_event')
  return JSON.stringify({
    order: of('orders', ofOrder, (row) => ({
      secret: row.client_secret !== null,
      on_hold: row.capture_before !== null,
      given_up: row.cancel_requested_at !== null,
    })),
    attempts: sorted(
      of('attempts', ['kind', 'state', 'response_status'], (row) => ({ held: row.lease_token !== null })),
    ),
    stock: sorted(of('stock_movements', ['line', 'kind', 'quantity'])),
    available: of('products', ['available']),
    ledger: sorted(of('ledger_transfers', ofTransfer)),
    refunds: sorted(of('refunds', ofRefund, (row) => ({ asked: row.attempt_key !== null }))),
    disputes: sorted(of('disputes', ofDispute)),
    endings: of('hold_endings', ['action', 'amount', 'doubt'], (row) => ({ ended: row.ended_at !== null })),
    jobs: sorted(jobs.map((job) => named(JSON.stringify(pick(job, ofJob))))),
    books: booksOf(books),
  })
}

/** The provider's side: whether handling has changed it. */
export function booksOf(books: readonly BookedPayment[]): string {
  return JSON.stringify(
    books.map(({ status, amount_received, amount_capturable, refunds, disputes }) => ({
      status,
      amount_received,
      amount_capturable,
      refunds: refunds.map(({ amount, status }) => ({ amount, status })),
      disputes: disputes.map(({ amount, status }) => ({ amount, status })),
    })),
  )
}

/** Puts names of our own in the place of ids. */
function namesIn(rows: Rows, books: readonly BookedPayment[]): (text: string) => string {
  const names = new Map<string, string>()
  for (const { order_id, attempt_key } of rows.orders ?? []) names.set(order_id, 'ORDER').set(attempt_key, 'KEY')
  for (const [place, { id, charges, refunds, disputes }] of books.entries()) {
    names.set(id, `INTENT${place}`)
    for (const [n, charge] of charges.entries()) names.set(charge.id, `CHARGE${place}.${n}`)
    for (const [n, refund] of refunds.entries()) names.set(refund.id, `REFUND${place}.${n}`)
    for (const [n, dispute] of disputes.entries()) names.set(dispute.id, `DISPUTE${place}.${n}`)
  }
  for (const { refund_id, provider_refund_id } of rows.refunds ?? []) {
    names.set(refund_id, `ROW OF ${names.get(provider_refund_id) ?? 'NO REFUND'}`)
  }
  const ids = new RegExp([...names.keys()].join('|'), 'g')
  return (text) => text.replace(ids, (id) => names.get(id) ?? id)
}

function pick(row: Row, columns: readonly string[]): object {
  return Object.fromEntries(columns.map((column) => [column, row[column]]))
}

function sorted(texts: readonly string[]): string[] {
  return [...texts].sort()
}
