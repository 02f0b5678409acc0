/** Our books against the provider's: what every order and ledger line claims has to stand there too, and the reverse. */
import type pg from 'pg'
import type { AuditScope, BookedPayment, Finding } from './audit.ts'

interface OrderInBooks {
  tenant_id: string
  order_id: string
  status: string
  currency: string
  total: number
  captured: number
  intent_id: string | null
  /** By currency: money that came to the provider's balance less what left it, disputes left out: a payment does not tell
   * of them. */
  ledger: Record<string, number> | null
}

const pageSize = 1000

/**
 * Compares every order with all payments that the provider has for it. `payments` must hold every payment that was made
 * for the orders in scope. What happens between the two readings looks like a difference: judge a service at rest.
 * Memory grows with the number of payments.
 */
export async function auditBooks(
  pool: pg.Pool,
  payments: Iterable<BookedPayment> | AsyncIterable<BookedPayment>,
  { tenantId, limit = 20 }: AuditScope = {},
): Promise<Finding[]> {
  const byOrder = new Map<string, BookedPayment[]>()
  for await (const payment of payments) {
    const { tenant, order } = payment.metadata
    if (tenant === undefined || order === undefined || (tenantId !== undefined && tenant !== tenantId)) continue
    const id = `${tenant} ${order}`
    byOrder.set(id, [...(byOrder.get(id) ?? []), payment])
  }
  const findings: Finding[] = []
  const counts = new Map<string, number>()
  const report = (finding: Finding) => {
    const count = (counts.get(finding.rule) ?? 0) + 1
    counts.set(finding.rule, count)
    if (count <= limit) findings.push(finding)
  }
  for await (const order of orders(pool, tenantId)) {
    const id = `${order.tenant_id} ${order.order_id}`
    compare(order, byOrder.get(id) ?? [], report)
    byOrder.delete(id)
  }
  for (const [id, [payment]] of byOrder) {
    const [tenant = '', order = ''] = id.split(' ')
    report(finding('every payment has its order', 'wrong', tenant, order, `payment ${payment?.intentId} has none`))
  }
  return findings
}

function compare(order: OrderInBooks, payments: BookedPayment[], report: (finding: Finding) => void): void {
  const say = (rule: string, severity: Finding['severity'], detail: string) =>
    report(finding(rule, severity, order.tenant_id, order.order_id, detail))
  const charged = payments.filter((payment) => payment.amountCaptured > 0 || payment.amountCapturable > 0)
  const captured = sum(charged, (payment) => payment.amountCaptured)
  const held = sum(charged, (payment) => payment.amountCapturable)
  const kept = captured - sum(charged, (payment) => payment.amountRefunded)
  const told = charged
    .map((each) => `${each.intentId} ${each.status} ${each.amountCaptured} ${each.currency}`)
    .join(', ')

  if (charged.length > 1) say('an order is charged at most once', 'wrong', told)
  for (const { intentId, amountRefunded, amountCaptured } of payments) {
    if (amountRefunded > amountCaptured) {
      say('no more goes back than was captured', 'wrong', `${intentId}: ${amountRefunded} of ${amountCaptured}`)
    }
  }
  switch (order.status) {
    case 'paid':
      if (charged.length !== 1 || captured !== order.captured || charged[0]?.intentId !== order.intent_id) {
        say('a paid order is charged what it says', 'wrong', `${order.captured} of ${order.total}; ${told}`)
      }
      break
    case 'authorized':
      if (charged.length !== 1 || captured > 0 || held !== order.total || charged[0]?.intentId !== order.intent_id) {
        say('an authorized order has its hold', 'wrong', `${order.total}; ${told}`)
      }
      break
    case 'payment_failed':
    case 'canceled':
      // A late payment is refunded, a late hold canceled, once recovery or a notification has found it.
      if (kept > 0 || held > 0) say('an order that has ended unpaid keeps no money', 'unfinished', told)
      break
    default:
      if (charged.length > 0) say('an order that is charged becomes paid', 'unfinished', `${order.status}; ${told}`)
  }

  const currencies = new Set([...Object.keys(order.ledger ?? {}), ...charged.map((payment) => payment.currency)])
  for (const currency of currencies) {
    const booked = order.ledger?.[currency] ?? 0
    const ofCurrency = charged.filter((payment) => payment.currency === currency)
    const taken = sum(ofCurrency, (payment) => payment.amountCaptured)
    const real = taken - sum(ofCurrency, (payment) => payment.amountRefunded)
    if (booked === real) continue
    // Money is booked when we learn of it, so we may be behind the provider in what came and in what went back. More than
    // ever came is made up.
    say(
      "the ledger equals the provider's books",
      booked > taken ? 'wrong' : 'unfinished',
      `${booked} booked, ${real} there, ${currency}`,
    )
  }
}

async function* orders(pool: pg.Pool, tenantId: string | undefined): AsyncGenerator<OrderInBooks> {
  let after: [string, string] = ['', '']
  for (;;) {
    const { rows } = await pool.query<OrderInBooks>(
      `SELECT o.tenant_id, o.order_id, o.status, o.currency, o.total, o.captured, o.intent_id,
         (SELECT jsonb_object_agg(l.currency, l.balance) FROM (
            SELECT t.currency, sum(CASE 'provider_balance' WHEN t.debit_account THEN t.amount
                                     WHEN t.credit_account THEN -t.amount ELSE 0 END) AS balance
            FROM ledger_transfers t
            WHERE t.tenant_id = o.tenant_id AND t.order_id = o.order_id AND t.kind NOT LIKE 'dispute%'
            GROUP BY t.currency) l) AS ledger
       FROM orders o
       WHERE (o.tenant_id, o.order_id) > ($1, $2) AND ($3::text IS NULL OR o.tenant_id = $3)
       ORDER BY o.tenant_id, o.order_id LIMIT $4`,
      [...after, tenantId ?? null, pageSize],
    )
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    after = [last.tenant_id, last.order_id]
  }
}

function finding(
  rule: string,
  severity: Finding['severity'],
  tenantId: string,
  subject: string,
  detail: string,
): Finding {
  return { rule, severity, tenantId, subject, detail }
}

function sum(payments: readonly BookedPayment[], amountOf: (payment: BookedPayment) => number): number {
  return payments.reduce((total, payment) => total + amountOf(payment), 0)
}
