/** Attempts: one row per idempotency key, claimed before anything lasting, owned through leases. */
import type pg from 'pg'
import type { RequestDigest } from '../domain/digest.ts'
import type { Order } from '../domain/order.ts'
import type { ProblemCode } from '../domain/problem.ts'
import type { ProviderTarget } from '../provider/port.ts'
import { type ClaimedOrder, type OrderJson, orderFromJson, withClock } from './order-json.ts'

/** What an attempt wants to claim. Absent fields are left out, never null: the SQL asks for their presence. */
export interface ClaimItem {
  tenantId: string
  key: string
  kind: 'checkout' | 'run'
  orderId: string
  customerId: string
  /** Random; whoever holds it decides for the attempt while the lease lasts. */
  leaseToken: string
  email: string
  name?: string
  items: readonly { sku: string; quantity: number }[]
  currency?: string
  expectedTotal?: number
  /** Minor units; an order without lines, for a hold of a given amount. */
  fixedTotal?: number
  capture: 'automatic' | 'manual'
  cartId?: string
  paymentMethod: string
  shippingAddress?: Record<string, string>
  metadata?: Record<string, string>
  digest: RequestDigest
  target: ProviderTarget
  parameterVersion: number
}

/** An attempt as stored, without its answer. */
export interface KnownAttempt {
  kind: 'checkout' | 'refund' | 'run'
  /** Of the order or refund that it made; a run is known by its order. */
  objectId: string
  state: 'running' | 'resumable' | 'open' | 'settled'
  leaseToken: string | null
  /** Not positive where the lease has ended, null where nobody holds one; ms by the database's clock. */
  leaseRemainingMs: number | null
  /** Null once the retention is over. */
  digest: RequestDigest | null
  answer: { status: number; body: string } | null
  /** Since the answer was stored; null where there is none yet. */
  settledMsAgo: number | null
  /** The stored answer is past its retention. */
  swept: boolean
  /** Read only while the attempt is not settled. */
  order: Order | null
}

export type Claim =
  | { kind: 'claimed'; order: Order }
  | { kind: 'known'; attempt: KnownAttempt }
  /** Nothing is stored and the key is free. */
  | { kind: 'refused'; code: ProblemCode; detail: Record<string, unknown> }
  | { kind: 'cart_taken'; attemptState: KnownAttempt['state']; order: Order }
  /** What stood in the way has gone meanwhile. */
  | { kind: 'again' }

interface AttemptJson {
  kind: KnownAttempt['kind']
  object_id: string
  state: KnownAttempt['state']
  lease_token: string | null
  lease_remaining_ms: number | null
  digest: string | null
  digest_tags: Record<string, string> | null
  digest_secret_id: string | null
  response_status: number | null
  settled_ms_ago: number | null
  swept: boolean
}

interface ClaimRow {
  item_key: string
  outcome: Claim['kind']
  refusal: ProblemCode | null
  detail: Record<string, unknown> | null
  attempt: AttemptJson | null
  response_body: string | null
  order_row: OrderJson | null
}

/**
 * Claims a group of attempts of one tenant in one statement and one commit; answers in the items' order. Safe to call
 * again with the same items after a lost answer: what the tokens have claimed is theirs.
 */
export async function claimAttempts(
  pool: pg.Pool,
  tenantId: string,
  items: readonly ClaimItem[],
  limits: { leaseMs: number; expiryMs: number },
): Promise<Claim[]> {
  const sorted = [...items].sort((a, b) => (a.key < b.key ? -1 : 1))
  const { rows } = await pool.query<ClaimRow>('SELECT * FROM claim_checkouts($1, $2, $3, $4)', [
    tenantId,
    JSON.stringify(sorted.map(claimJson)),
    limits.leaseMs,
    limits.expiryMs,
  ])
  const byKey = new Map(rows.map((row) => [row.item_key, row]))
  return items.map((item) => {
    const row = byKey.get(item.key)
    if (row === undefined) throw new Error('claim_checkouts has left out an item')
    return claimFrom(item, row)
  })
}

function claimJson(item: ClaimItem): Record<string, unknown> {
  return {
    key: item.key,
    kind: item.kind,
    order_id: item.orderId,
    customer_id: item.customerId,
    token: item.leaseToken,
    email: item.email,
    name: item.name,
    items: item.items,
    ...summedBySku(item.items),
    currency: item.currency,
    expected_total: item.expectedTotal,
    fixed_total: item.fixedTotal,
    capture: item.capture,
    cart_id: item.cartId,
    payment_method: item.paymentMethod,
    shipping_address: item.shippingAddress,
    metadata: item.metadata,
    digest: item.digest.digest,
    digest_tags: item.digest.tags,
    digest_secret_id: item.digest.secretId,
    account: item.target.account,
    connected_account: item.target.connectedAccount ?? undefined,
    livemode: item.target.livemode,
    api_version: item.target.apiVersion,
    parameter_version: item.parameterVersion,
  }
}

function summedBySku(items: ClaimItem['items']): { skus: string[]; quantities: number[] } {
  const sums = new Map<string, number>()
  for (const { sku, quantity } of items) sums.set(sku, (sums.get(sku) ?? 0) + quantity)
  const skus = [...sums.keys()].sort()
  return { skus, quantities: skus.map((sku) => sums.get(sku) as number) }
}

function claimFrom(item: ClaimItem, row: ClaimRow): Claim {
  switch (row.outcome) {
    case 'claimed':
      return { kind: 'claimed', order: claimedOrder(item, row.detail as unknown as ClaimedDetail) }
    case 'known': {
      const attempt = attemptFrom(row.attempt as AttemptJson, row.response_body, row.order_row)
      // An earlier call had claimed it, and its answer was lost.
      const ours = attempt.state === 'running' && attempt.leaseToken === item.leaseToken
      return ours && attempt.order !== null ? { kind: 'claimed', order: attempt.order } : { kind: 'known', attempt }
    }
    case 'refused':
      return { kind: 'refused', code: row.refusal as ProblemCode, detail: row.detail ?? {} }
    case 'cart_taken':
      return {
        kind: 'cart_taken',
        attemptState: (row.attempt as AttemptJson).state,
        order: orderFromJson(row.order_row as OrderJson),
      }
    case 'again':
      return { kind: 'again' }
  }
}

interface ClaimedDetail {
  currency: string
  total: number
  lines: Order['lines']
  customer_id: string
  last_send_before: string
  expires_at: string
  created_at: string
}

/** The order that the claim has made: what was asked for, and what only the database knew. */
function claimedOrder(item: ClaimItem, detail: ClaimedDetail): Order {
  const createdAt = new Date(detail.created_at)
  const lastSendBefore = new Date(detail.last_send_before)
  return {
    tenant_id: item.tenantId,
    order_id: item.orderId,
    attempt_key: item.key,
    kind: item.kind,
    status: 'pending',
    currency: detail.currency,
    total: detail.total,
    capture: item.capture,
    lines: detail.lines,
    customer_id: detail.customer_id,
    cart_id: item.cartId ?? null,
    shipping_address: item.shippingAddress ?? null,
    metadata: item.metadata ?? null,
    payment_method: item.paymentMethod,
    provider_account: item.target.account,
    connected_account: item.target.connectedAccount,
    livemode: item.target.livemode,
    api_version: item.target.apiVersion,
    parameter_version: item.parameterVersion,
    intent_id: null,
    charge_id: null,
    payment_status: null,
    decline_code: null,
    client_secret: null,
    capture_before: null,
    captured: 0,
    refunded: 0,
    disputed_amount: 0,
    disputed: false,
    maybe_sent: false,
    send_is_pointless: false,
    last_send_before: lastSendBefore,
    cancel_requested_at: null,
    reconcile_reason: null,
    next_ask_at: lastSendBefore,
    asks: 0,
    expires_at: new Date(detail.expires_at),
    created_at: createdAt,
    updated_at: createdAt,
  }
}

function attemptFrom(attempt: AttemptJson, body: string | null, order: OrderJson | null): KnownAttempt {
  return {
    kind: attempt.kind,
    objectId: attempt.object_id,
    state: attempt.state,
    leaseToken: attempt.lease_token,
    leaseRemainingMs: attempt.lease_remaining_ms,
    digest:
      attempt.digest === null || attempt.digest_secret_id === null
        ? null
        : {
            digest: attempt.digest,
            secretId: attempt.digest_secret_id,
            tags: attempt.digest_tags ?? {},
          },
    answer: attempt.response_status === null || body === null ? null : { status: attempt.response_status, body },
    settledMsAgo: attempt.settled_ms_ago,
    swept: attempt.swept,
    order: order === null ? null : orderFromJson(order),
  }
}

/** What is known of these keys, in one read; unknown ones are missing from the map. */
export async function readAttempts(
  pool: pg.Pool,
  tenantId: string,
  keys: readonly string[],
): Promise<Map<string, KnownAttempt>> {
  const { rows } = await pool.query<{
    item_key: string
    attempt: AttemptJson
    response_body: string | null
    order_row: OrderJson | null
  }>('SELECT * FROM read_attempts($1, $2)', [tenantId, keys])
  return new Map(rows.map((row) => [row.item_key, attemptFrom(row.attempt, row.response_body, row.order_row)]))
}

/** The tokens under which some of these keys' attempts are running now, by key. */
export async function runningLeases(
  pool: pg.Pool,
  tenantId: string,
  keys: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ key: string; lease_token: string }>(
    `SELECT key, lease_token FROM attempts
     WHERE tenant_id = $1 AND key = ANY ($2) AND state = 'running' AND lease_expires_at > clock_timestamp()`,
    [tenantId, keys],
  )
  return new Map(rows.map((row) => [row.key, row.lease_token]))
}

/**
 * Takes the lease of an order's attempt where nobody holds it. `from` is `running` where its owner died or froze; the
 * order then counts as perhaps sent. With `maySend`, the charge may be sent until the lease ends. Null where somebody
 * holds the lease or the order is no longer open.
 */
export async function takeLease(
  pool: pg.Pool,
  tenantId: string,
  orderId: string,
  leaseToken: string,
  { leaseMs, maySend }: { leaseMs: number; maySend: boolean },
): Promise<{ from: 'running' | 'resumable' | 'open'; order: ClaimedOrder } | null> {
  const { rows } = await pool.query<{ from_state: 'running' | 'resumable' | 'open'; order_row: OrderJson; now: Date }>(
    'SELECT *, clock_timestamp() AS now FROM take_lease($1, $2, $3, $4, $5)',
    [tenantId, orderId, leaseToken, leaseMs, maySend],
  )
  const [row] = rows
  return row === undefined ? null : { from: row.from_state, order: withClock(row.order_row, row.now) }
}
