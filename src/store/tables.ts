/** Kysely's view of the tables; the migrations say what they mean. */
import type { ColumnType, Generated, JSONColumnType } from 'kysely'
import type { Dispute } from '../domain/dispute.ts'
import type { Order } from '../domain/order.ts'
import type { Refund } from '../domain/refund.ts'
import type { RunClosing } from '../domain/run.ts'

type Json<T> = JSONColumnType<T & object>
type Defaulted<T> = ColumnType<T, T | undefined, T>
type WithDefaults<Row, Columns extends keyof Row> = Omit<Row, Columns> & { [C in Columns]: Defaulted<Row[C]> }

export interface Tables {
  tenants: {
    tenant_id: string
    name: string
    connected_account: string | null
    created_at: Generated<Date>
  }
  api_keys: {
    key_hash: Buffer
    tenant_id: string
    role: 'storefront' | 'backend' | 'admin'
    label: string
    created_at: Generated<Date>
    revoked_at: Date | null
  }
  products: {
    tenant_id: string
    sku: string
    name: string
    unit_price: number
    currency: string
    available: number
    updated_at: Generated<Date>
  }
  currencies: { code: string; minimum: number; maximum: number; step: number }
  customers: {
    tenant_id: string
    customer_id: string
    email: string | null
    name: string | null
    created_at: Generated<Date>
  }
  orders: Omit<Order, 'lines' | 'shipping_address' | 'metadata'> & {
    lines: Json<Order['lines']>
    shipping_address: Json<Record<string, string>> | null
    metadata: Json<Record<string, string>> | null
  }
  order_transitions: {
    tenant_id: string
    order_id: string
    at: Generated<Date>
    from_status: string
    to_status: string
    cause: string
    actor: string | null
    reason: string | null
  }
  stock_movements: {
    tenant_id: string
    order_id: string
    line: number
    kind: 'reserve' | 'release'
    sku: string
    quantity: number
    created_at: Generated<Date>
  }
  attempts: {
    tenant_id: string
    key: string
    kind: 'checkout' | 'refund' | 'run'
    object_id: string
    state: 'running' | 'resumable' | 'open' | 'settled'
    lease_token: string | null
    lease_expires_at: Date | null
    digest: Buffer | null
    digest_tags: Json<Record<string, string>> | null
    digest_secret_id: string | null
    response_status: number | null
    response_body: string | null
    created_at: Generated<Date>
    settled_at: Date | null
    swept_at: Date | null
  }
  carts: {
    tenant_id: string
    cart_id: string
    order_id: string
    attempt_key: string
    created_at: Generated<Date>
  }
  provider_calls: {
    tenant_id: string
    order_id: string
    call_id: Generated<string>
    operation: string
    request_id: string | null
    outcome: string
    http_status: number | null
    error_code: string | null
    duration_ms: number
    replayed: boolean
    started_at: Date
  }
  ledger_transfers: {
    tenant_id: string
    transfer_id: string
    kind: string
    business_id: string
    debit_account: string
    credit_account: string
    amount: number
    currency: string
    order_id: string
    created_at: Generated<Date>
  }
  jobs: {
    tenant_id: string
    topic: string
    business_id: string
    payload: Defaulted<Record<string, unknown>>
    state: Defaulted<'ready' | 'done' | 'dead' | 'discarded'>
    run_at: Generated<Date>
    attempts: Defaulted<number>
    lease_token: string | null
    last_error: string | null
    created_at: Generated<Date>
    finished_at: Date | null
  }
  meters: {
    tenant_id: string
    meter_type: string
    price: number
    per: number
    currency: string
    updated_at: Generated<Date>
  }
  emails: {
    tenant_id: string
    order_id: string
    kind: string
    state: 'waiting' | 'sending' | 'sent' | 'uncertain' | 'skipped' | 'failed'
    reason: string | null
    amount: number | null
    claim_token: string | null
    created_at: Generated<Date>
    updated_at: Generated<Date>
  }
  webhook_endpoints: {
    tenant_id: string
    url: string
    secret: string
    previous_secret: Defaulted<string | null>
    previous_secret_until: Defaulted<Date | null>
    last_success_at: Defaulted<Date | null>
    disabled_at: Defaulted<Date | null>
    disabled_reason: Defaulted<string | null>
    created_at: Generated<Date>
    updated_at: Generated<Date>
  }
  merchant_events: {
    tenant_id: string
    event_id: string
    order_id: string
    type: string
    transition: string
    body: string
    created_at: Generated<Date>
  }
  event_deliveries: {
    tenant_id: string
    delivery_id: string
    event_id: string
    attempt: number
    delivered: boolean
    http_status: number | null
    error: string | null
    duration_ms: number
    created_at: Generated<Date>
  }
  runs: {
    tenant_id: string
    order_id: string
    closed_at: Date | null
    closed_by: RunClosing | null
    next_look_at: Date
    looks: Defaulted<number>
    finished_at: Date | null
    created_at: Generated<Date>
  }
  usage_lines: {
    tenant_id: string
    order_id: string
    meter_type: string
    quantity: number
    price: number
    per: number
    amount: number
    used_after: number
    created_at: Generated<Date>
  }
  provider_events: {
    provider: string
    event_id: string
    type: string
    account: string | null
    livemode: boolean
    created_at: Date
    object: string
    readable: boolean
    intent_id: string | null
    charge_id: string | null
    refund_id: string | null
    dispute_id: string | null
    status: string | null
    amount: number | null
    amount_captured: number | null
    currency: string | null
    decline_code: string | null
    tenant_id: string | null
    order_id: string | null
    state: 'waiting' | 'done' | 'ignored' | 'foreign' | 'mismatched'
    reason: string | null
    received_at: Generated<Date>
    handled_at: Date | null
  }
  hold_endings: {
    tenant_id: string
    order_id: string
    action: 'capture' | 'cancel'
    amount: number
    doubt: Defaulted<string | null>
    ended_at: Defaulted<Date | null>
    next_ask_at: Date
    asks: Defaulted<number>
    created_at: Generated<Date>
  }
  refunds: WithDefaults<
    Refund,
    'failure_code' | 'maybe_sent' | 'send_is_pointless' | 'doubt' | 'asks' | 'created_at' | 'updated_at'
  >
  disputes: WithDefaults<Dispute, 'created_at' | 'updated_at'>
  audit_entries: {
    tenant_id: string
    entry_id: string
    actor: string
    key_id: string | null
    request_id: string
    action: string
    target_type: string
    target_id: string
    order_id: string | null
    reason: string | null
    outcome: string
    created_at: Generated<Date>
    ended_at: Date | null
  }
  erasures: {
    tenant_id: string
    customer_id: string
    requested_at: Generated<Date>
    completed_at: Defaulted<Date | null>
    next_look_at: Date | null
    looks: Defaulted<number>
  }
  reports: {
    tenant_id: string
    report_id: string
    period_from: Date
    period_to: Date
    state: Defaulted<'running' | 'done' | 'failed'>
    reason: Defaulted<string | null>
    compared_to: Date
    matched: Defaulted<number>
    missing_here: Defaulted<number>
    missing_there: Defaulted<number>
    amount_differs: Defaulted<number>
    created_at: Generated<Date>
    finished_at: Defaulted<Date | null>
  }
  report_findings: {
    tenant_id: string
    report_id: string
    subject: string
    kind: 'missing_here' | 'missing_there' | 'amount_differs'
    order_id: string | null
    intent_id: string | null
    ours: number | null
    theirs: number | null
    currency: string | null
  }
}
