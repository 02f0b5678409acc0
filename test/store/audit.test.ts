/** The judge is judged: every rule finds what breaks it, and nothing else does. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditOrders, auditStock, type BookedPayment } from '../../src/store/audit.ts'
import { auditBooks } from '../../src/store/audit-books.ts'
import { bookedPayment } from '../support/booked-payment.ts'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
/** Orders by what became of them. */
const ids: Record<string, string> = {}
const paidKey = newKey()
beforeAll(async () => {
  scene = await startScene()
  await scene.books.webhooks({ drop: 1 })
  ids.paid = (await scene.shop.checkout(paidKey, cart({ cart_id: 'cart-paid' }))).json.id
  ids.held = (await scene.shop.checkout(newKey(), cart({ capture: 'manual' }))).json.id
  ids.failed = (
    await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_chargeDeclined', cart_id: 'cart-failed' }))
  ).json.order_id
})
afterAll(() => scene.stop())

const pool = () => scene.service.deps.pool
const named = (statement: string) =>
  statement
    .replaceAll('{paid}', ids.paid ?? '')
    .replaceAll('{failed}', ids.failed ?? '')
    .replaceAll('{key}', paidKey)

/** What breaks each rule; it is done in a transaction of its own and taken back. */
const breaks: [rule: string, breaking: string][] = [
  ['an order has the attempt that made it', "DELETE FROM attempts WHERE key = '{key}'"],
  ['an attempt has made one order', "DELETE FROM orders WHERE order_id = '{paid}'"],
  ['an attempt is settled exactly when its order is', "UPDATE attempts SET state = 'open' WHERE key = '{key}'"],
  [
    'an attempt is settled exactly when its order is',
    "UPDATE orders SET status = 'needs_reconcile' WHERE order_id = '{paid}'",
  ],
  [
    'a settled attempt keeps its answer until it is swept, and no lease',
    "UPDATE attempts SET response_body = NULL WHERE key = '{key}'",
  ],
  [
    'a settled attempt keeps its answer until it is swept, and no lease',
    "UPDATE attempts SET lease_token = gen_random_uuid() WHERE key = '{key}'",
  ],
  [
    'the story of an order leads to its status, each step from where the last one ended',
    "DELETE FROM order_transitions WHERE order_id = '{paid}'",
  ],
  [
    'the story of an order leads to its status, each step from where the last one ended',
    "INSERT INTO order_transitions (tenant_id, order_id, from_status, to_status, cause) VALUES ('ten_demo', '{paid}', 'pending', 'paid', 'answer')",
  ],
  [
    'an order that has ended or is authorized is told of once, and no other is told of as such',
    "DELETE FROM jobs WHERE business_id = '{paid}:paid'",
  ],
  [
    'an order that has ended or is authorized is told of once, and no other is told of as such',
    "INSERT INTO jobs (tenant_id, topic, business_id) VALUES ('ten_demo', 'order_news', '{failed}:paid')",
  ],
  [
    'what an order has captured is booked as such, and only a paid order has captured',
    "DELETE FROM ledger_transfers WHERE order_id = '{paid}'",
  ],
  [
    'what an order has captured is booked as such, and only a paid order has captured',
    "UPDATE orders SET captured = captured - 1 WHERE order_id = '{paid}'",
  ],
  [
    'what an order has captured is booked as such, and only a paid order has captured',
    "UPDATE orders SET status = 'canceled' WHERE order_id = '{paid}'",
  ],
  [
    'stock is reserved once per line, and given back exactly where the order has ended unpaid',
    "DELETE FROM stock_movements WHERE order_id = '{failed}' AND kind = 'release'",
  ],
  [
    'stock is reserved once per line, and given back exactly where the order has ended unpaid',
    "UPDATE stock_movements SET quantity = 2 WHERE order_id = '{paid}'",
  ],
  [
    'stock is reserved once per line, and given back exactly where the order has ended unpaid',
    "INSERT INTO stock_movements (tenant_id, order_id, line, kind, sku, quantity) VALUES ('ten_demo', '{paid}', 1, 'release', 'mug', 1)",
  ],
  [
    'a cart is held exactly by an order that is open, authorized or paid',
    "DELETE FROM carts WHERE cart_id = 'cart-paid'",
  ],
  [
    'a cart is held exactly by an order that is open, authorized or paid',
    "INSERT INTO carts (tenant_id, cart_id, order_id, attempt_key) VALUES ('ten_demo', 'cart-failed', '{failed}', 'k')",
  ],
  ['an order becomes definite', "UPDATE orders SET status = 'requires_action' WHERE order_id = '{paid}'"],
]

describe('our own books', () => {
  it('are in order as they are', async () => {
    expect(await auditOrders(pool())).toEqual([])
  })

  it.each(breaks)('are not where it is broken that %s', async (rule, breaking) => {
    expect(await findingsAfter(breaking)).toContain(rule)
    expect(await auditOrders(pool())).toEqual([])
  })

  it('are judged for one tenant where one is asked for', async () => {
    await inTransaction("DELETE FROM attempts WHERE key = '{key}'", async (client) => {
      expect(await auditOrders(client, { tenantId: 'ten_other' })).toEqual([])
      expect(await auditOrders(client, { tenantId: 'ten_demo' })).not.toEqual([])
    })
  })
})

describe('stock', () => {
  it('adds up to what there was, and not to anything else', async () => {
    const initial = { mug: 100_000, rare: 5 }
    expect(await auditStock(pool(), 'ten_demo', initial)).toEqual([])
    for (const wrong of [
      { ...initial, mug: 99_999 },
      { ...initial, never: 1 },
    ]) {
      expect(await auditStock(pool(), 'ten_demo', wrong)).toMatchObject([{ rule: 'stock adds up', severity: 'wrong' }])
    }
  })
})

describe("the provider's books", () => {
  const change = (order: string, change: Partial<BookedPayment>) => (payments: BookedPayment[]) =>
    payments.map((each) => (each.metadata.order === ids[order] ? { ...each, ...change } : each))
  const more = (order: string, extra: Partial<BookedPayment>) => (payments: BookedPayment[]) => [
    ...payments,
    {
      ...(payments.find((each) => each.metadata.order === ids[order]) as BookedPayment),
      intentId: 'pi_more',
      ...extra,
    },
  ]

  const differences: [
    what: string,
    differ: (payments: BookedPayment[]) => BookedPayment[],
    rule: string,
    severity: string,
  ][] = [
    ['a second charge', more('paid', {}), 'an order is charged at most once', 'wrong'],
    [
      'no charge',
      (payments) => payments.filter((each) => each.metadata.order !== ids.paid),
      'a paid order is charged what it says',
      'wrong',
    ],
    ['a charge of less', change('paid', { amountCaptured: 1249 }), 'a paid order is charged what it says', 'wrong'],
    ['another payment', change('paid', { intentId: 'pi_other' }), 'a paid order is charged what it says', 'wrong'],
    [
      'more back than captured',
      change('paid', { amountRefunded: 1251 }),
      'no more goes back than was captured',
      'wrong',
    ],
    [
      'a refund that we have not booked',
      change('paid', { amountRefunded: 100 }),
      "the ledger equals the provider's books",
      'unfinished',
    ],
    ['money that never came', change('paid', { amountCaptured: 0 }), "the ledger equals the provider's books", 'wrong'],
    ['no hold', change('held', { amountCapturable: 0 }), 'an authorized order has its hold', 'wrong'],
    [
      'a hold that was captured',
      change('held', { amountCaptured: 1250, amountCapturable: 0 }),
      'an authorized order has its hold',
      'wrong',
    ],
    [
      'money for a declined order',
      more('failed', { amountCaptured: 1250 }),
      'an order that has ended unpaid keeps no money',
      'unfinished',
    ],
    [
      'a payment of no order',
      more('paid', { metadata: { tenant: 'ten_demo', order: 'ord_none' } }),
      'every payment has its order',
      'wrong',
    ],
  ]

  it('agree with ours as they are, and what is not ours is left out', async () => {
    const payments = await booked()
    expect(await auditBooks(pool(), payments)).toEqual([])
    expect(await auditBooks(pool(), more('paid', { metadata: {} })(payments))).toEqual([])
  })

  it.each(differences)('differ where there is %s', async (_what, differ, rule, severity) => {
    expect(await auditBooks(pool(), differ(await booked()))).toContainEqual(expect.objectContaining({ rule, severity }))
  })

  it('say that an open order has been charged', async () => {
    const payments = await booked()
    await inTransaction("UPDATE orders SET status = 'needs_reconcile' WHERE order_id = '{paid}'", async (client) => {
      expect((await auditBooks(client, payments)).map(({ rule }) => rule)).toContain(
        'an order that is charged becomes paid',
      )
    })
  })
})

async function booked(): Promise<BookedPayment[]> {
  return (await scene.books.payments()).map(bookedPayment)
}

async function findingsAfter(breaking: string): Promise<string[]> {
  let found: string[] = []
  await inTransaction(breaking, async (client) => {
    found = (await auditOrders(client)).map(({ rule }) => rule)
  })
  return found
}

/** Runs `judge` on a connection on which the books have been broken, and takes that back. */
async function inTransaction(
  breaking: string,
  judge: (client: ReturnType<typeof pool>) => Promise<void>,
): Promise<void> {
  const client = await pool().connect()
  try {
    await client.query('BEGIN')
    await client.query(named(breaking))
    // An audit asks one statement after the other; a client does for that what a pool does.
    await judge(client as unknown as ReturnType<typeof pool>)
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}
