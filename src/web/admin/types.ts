/** What the page reads of the API's answers; openapi.yaml has all of it. Moments are RFC 3339, amounts minor units. */

export interface List<Item> {
  data: Item[]
  has_more: boolean
  next_cursor: string | null
}

export interface Figures {
  at: string
  tenant: { id: string; name: string }
  actor: string
  waiting: {
    needs_reconcile: number
    oldest_needs_reconcile_at: string | null
    flagged: number
    dead_jobs: number
    unnamed_dead_jobs: number
    due_jobs: number
    oldest_due_at: string | null
    uncertain_emails: number
    failed_emails: number
    undelivered: number
    foreign_events: number
    mismatched_events: number
    unnamed_events: number
  }
  started: { at: string; orders: number }[]
  process: { id: string; since: string; replays: number; conflicts: number }
}

export interface Order {
  id: string
  status: string
  currency: string
  total: number
  captured: number
  refunded: number
  disputed: boolean
  lines: { sku: string; name: string; quantity: number; unit_price: number; amount: number }[]
  customer_id: string
  payment: { reference: string | null; status: string | null; decline_code?: string; capture_before?: string }
  reconcile_reason?: string
  created_at: string
  updated_at: string
  attempt_key: string
  kind: string
  capture: string
  maybe_sent: boolean
  asks: number
  next_ask_at: string | null
  expires_at: string | null
  cancel_requested_at: string | null
}

export interface OrderInList extends Order {
  status_since: string
  status_age_seconds: number
}

interface ProviderCall {
  operation: string
  request_id: string | null
  outcome: string
  http_status: number | null
  error_code: string | null
  duration_ms: number
  replayed: boolean
  started_at: string
}

interface ProviderEvent {
  event_id: string
  type: string
  created_at: string
  intent_id: string | null
  charge_id: string | null
  refund_id: string | null
  dispute_id: string | null
  status: string | null
  amount: number | null
  amount_captured: number | null
  currency: string | null
  decline_code: string | null
  state: string
  reason: string | null
  received_at: string
  handled_at: string | null
}

export type EventInList = Omit<ProviderEvent, 'event_id'> & {
  id: string
  about: string
  account: string | null
  livemode: boolean
  readable: boolean
  order_id: string | null
}

export interface Job {
  topic: string
  business_id: string
  state: string
  run_at: string
  attempts: number
  last_error: string | null
  created_at: string
  finished_at: string | null
}

export type JobInList = Job & { id: string; running: boolean; payload: Record<string, unknown> }

export interface Email {
  kind: string
  state: string
  reason: string | null
  amount: number | null
  created_at: string
  updated_at: string
}

export type EmailInList = Email & { id: string; order_id: string }

interface Delivery {
  event_id: string
  attempt: number
  delivered: boolean
  http_status: number | null
  error: string | null
  duration_ms: number
  created_at: string
}

export type DeliveryInList = Delivery & { id: string; type: string; order_id: string }

export interface AuditEntry {
  id: string
  actor: string
  key_id: string | null
  request_id: string
  action: string
  target: { type: string; id: string }
  order_id: string | null
  reason: string | null
  outcome: string
  created_at: string
  ended_at: string | null
}

export interface Report {
  id: string
  state: string
  reason: string | null
  from: string
  to: string
  compared_to: string
  matched: number
  missing_here: number
  missing_there: number
  amount_differs: number
  created_at: string
  finished_at: string | null
}

export interface Finding {
  kind: string
  order_id: string | null
  reference: string | null
  ours: number | null
  theirs: number | null
  currency: string | null
}

interface Transition {
  at: string
  from_status: string
  to_status: string
  cause: string
  actor: string | null
  reason: string | null
}

export interface Transfer {
  transfer_id: string
  kind: string
  business_id: string
  debit_account: string
  credit_account: string
  amount: number
  currency: string
  created_at: string
}

export interface Refund {
  refund_id: string
  attempt_key: string | null
  amount: number
  currency: string
  reason: string | null
  status: string
  provider_refund_id: string | null
  failure_code: string | null
  doubt: string | null
  created_at: string
  updated_at: string
}

export interface Dispute {
  dispute_id: string
  amount: number
  currency: string
  status: string
  withdrawn: boolean
  reinstated: boolean
  counts: boolean
  created_at: string
  updated_at: string
}

export interface Story extends Order {
  metadata: Record<string, string>
  customer: { customer_id: string; email: string | null; name: string | null } | null
  attempt: {
    key: string
    kind: string
    state: string
    lease_expires_at: string | null
    response_status: number | null
    created_at: string
    settled_at: string | null
    swept_at: string | null
  } | null
  provider_calls: ProviderCall[]
  provider_events: ProviderEvent[]
  transitions: Transition[]
  ledger: Transfer[]
  stock_movements: { line: number; kind: string; sku: string; quantity: number; created_at: string }[]
  hold_ending: {
    action: string
    amount: number
    ended_at: string | null
    next_ask_at: string
    asks: number
    created_at: string
  } | null
  run: { closed_at: string | null; closed_by: string | null; finished_at: string | null } | null
  refunds: Refund[]
  disputes: Dispute[]
  jobs: Job[]
  emails: Email[]
  merchant_events: { event_id: string; type: string; transition: string; created_at: string }[]
  deliveries: (Delivery & { delivery_id: string })[]
  audit: AuditEntry[]
}
