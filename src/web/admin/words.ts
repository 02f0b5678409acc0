/** The service's words, for people. A word that is not known here is shown as it is. */

export type Tone = 'good' | 'warn' | 'bad' | ''

const statuses: Record<string, [string, Tone]> = {
  pending: ['Pending', ''],
  requires_action: ['Waits for the customer', 'warn'],
  needs_reconcile: ['Needs reconciliation', 'bad'],
  authorized: ['Authorized', 'good'],
  paid: ['Paid', 'good'],
  partially_refunded: ['Partially refunded', 'good'],
  refunded: ['Refunded', ''],
  payment_failed: ['Payment failed', ''],
  canceled: ['Canceled', ''],
  waiting: ['Waiting', ''],
  done: ['Done', 'good'],
  ignored: ['Ignored', ''],
  foreign: ['Fits no order', 'warn'],
  mismatched: ['Does not match', 'bad'],
  ready: ['Ready', ''],
  dead: ['Given up', 'bad'],
  discarded: ['Discarded', ''],
  sending: ['Sending', ''],
  sent: ['Sent', 'good'],
  uncertain: ['Uncertain', 'warn'],
  skipped: ['Skipped', ''],
  failed: ['Failed', 'bad'],
  running: ['Running', ''],
  succeeded: ['Succeeded', 'good'],
  unsent: ['Not sent', 'warn'],
  missing_here: ['Not in our books', 'bad'],
  missing_there: ['Not at the provider', 'bad'],
  amount_differs: ['Amounts differ', 'bad'],
}

export function statusWord(status: string): [label: string, tone: Tone] {
  return statuses[status] ?? [plain(status), '']
}

const reasons: Record<string, string> = {
  timeout: 'The provider did not answer in time. It is asked again by itself.',
  connection_lost: 'The connection broke before the provider answered. It is asked again by itself.',
  provider_error: 'The provider answered with an error of its own. It is asked again by itself.',
  key_in_use: 'The provider still works on an earlier request with this key. It is asked again by itself.',
  unreadable_answer: 'The provider’s answer could not be read. It is asked again by itself.',
  processing: 'The provider has not decided yet. It is asked again by itself.',
  not_reached: 'The provider could not be asked yet. That is tried again by itself.',
  not_found_yet: 'The provider has no such payment yet. Absence counts 10 minutes after the last send.',
  provider_account_changed:
    'The credentials now belong to another account or mode than the order was claimed for. Nothing is sent until they are restored, or a person decides.',
  amount_mismatch: 'Money arrived in another amount than the order asked for. It is booked to suspense.',
  currency_mismatch: 'Money arrived in another currency than the order asked for. It is booked to suspense.',
  order_mismatch: 'The payment names another order. What it brought is booked to suspense.',
  mode_mismatch: 'The payment is of another mode, live or test, than the order.',
  several_payments: 'The provider has more than one payment for the order.',
  provider_rejected: 'The provider refuses our request for a reason that is ours.',
  notification_mismatch: 'A notification about this order does not match our books.',
  missing_at_provider: 'A report found money in our books that the provider does not have.',
  charge_not_booked: 'A report found money at the provider that is not in our books.',
  amount_differs_at_provider: 'A report found different amounts in our books and at the provider.',
}

/** What a reason means, as a sentence; null where there is no more to say than the word. */
export function reasonSentence(reason: string): string | null {
  return reasons[reason] ?? null
}

const topics: Record<string, string> = {
  provider_event: 'Handle a notification',
  close_payment: 'Close a payment',
  refund_late_payment: 'Give late money back',
  order_news: 'Spread an order’s news',
  send_email: 'Send an email',
  deliver_event: 'Deliver to the merchant',
  reconciliation_report: 'Compare the books',
}

export function topicWord(topic: string): string {
  return topics[topic] ?? plain(topic)
}

const causes: Record<string, string> = {
  answer: 'by the provider’s answer',
  repeat: 'by a repeat of the request',
  recovery: 'by recovery',
  notification: 'by a notification',
  expiry: 'because it expired',
  customer: 'by the customer',
  merchant: 'by the merchant',
  operator: 'by an operator',
}

export function causeWord(cause: string): string {
  return causes[cause] ?? `by ${plain(cause)}`
}

const actions: Record<string, string> = {
  reconcile: 'Reconcile now',
  replay: 'Replay an event',
  requeue_job: 'Requeue a job',
  discard_job: 'Discard a job',
  email_was_sent: 'Email has arrived',
  send_email_again: 'Send an email again',
  redeliver: 'Deliver an event again',
  request_report: 'Compare the books',
  make_report: 'Compare the books on the command line',
  erase_personal_data: 'Erase a person’s data',
  create_tenant: 'Add a shop',
  create_key: 'Make an API key',
  revoke_key: 'Revoke an API key',
  decide_paid: 'Decide: paid',
  decide_payment_failed: 'Decide: payment failed',
  decide_canceled: 'Decide: canceled',
  decide_accept_captured: 'Decide: accept what was captured',
  decide_refund_suspense: 'Decide: give back what is in suspense',
  decide_acknowledge: 'Take the flag off',
}

export const knownActions = Object.keys(actions)

export function actionWord(action: string): string {
  return actions[action] ?? plain(action)
}

/** `not_found_yet` as "not found yet". */
export function plain(word: string): string {
  return word.replaceAll('_', ' ')
}

/** "1 order", "3 orders"; a count that stopped at its limit is "1000 or more orders". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${atLeast(count)} ${count === 1 ? one : many}`
}

/** Where the service stops counting. */
const countedMax = 1000

export function atLeast(count: number): string {
  return count >= countedMax ? `${countedMax}+` : String(count)
}
