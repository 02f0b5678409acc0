/** What a checkout costs, counted in statements on the wire, never in time. */
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Service } from '../../src/service.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys, type Reply } from '../support/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { heldUp } from '../support/held-up.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'
import { startWireTap, type WireTap } from '../support/wire-tap.ts'

let database: TestDatabase
let scene: Scene
let tap: WireTap
/** The service whose statements are counted. */
let service: Service
let shop: Client
beforeAll(async () => {
  database = await createTestDatabase()
  scene = await startScene({ databaseUrl: database.url, settings: { REPLAY_CACHE_SECONDS: '0' } })
  tap = await startWireTap(database.url)
  service = await scene.start({ DATABASE_URL: tap.through(database.url) })
  shop = scene.shop.at(service.url)
  // Who calls and who we are to the provider is asked once and remembered.
  expect((await shop.checkout(newKey())).status).toBe(201)
})
beforeEach(() => tap.clear())
afterEach(() => expectBooksInOrder(scene))
afterAll(async () => {
  await scene.stop()
  tap.close()
  await database.drop()
})

describe('a first attempt', () => {
  it.each([
    ['paid', cart(), 201],
    ['with a cart, an address and metadata', whole(), 201],
    ['declined', cart({ payment_method: 'pm_card_chargeDeclined' }), 402],
    [
      'of ten products',
      cart({ items: Array.from({ length: 10 }, (_, i) => ({ sku: ['mug', 'tee', 'poster'][i % 3], quantity: 1 })) }),
      201,
    ],
  ] as const)('%s: two statements, each its own transaction', async (_what, body, status) => {
    // The API key is looked up again every few seconds; that is no part of an attempt.
    const statements = await countedAround(() => shop.checkout(newKey(), body), status)
    expect(statements).toHaveLength(2)
    expect(statements.map(claimOrSettle)).toEqual(['claim', 'settle'])
  })

  it('that is refused: one statement', async () => {
    const statements = await countedAround(() => shop.checkout(newKey(), cart({ expected_total: 1 })), 409)
    expect(statements.map(claimOrSettle)).toEqual(['claim'])
  })

  it('in a crowd shares its statements with its neighbours', async () => {
    // Both steps are held up until all have come to them: how fast they arrive must not decide.
    const claims = await heldUp(
      scene.db,
      sql`SELECT 1 FROM products WHERE tenant_id = 'ten_demo' AND sku = 'mug' FOR UPDATE`,
    )
    const settles = await heldUp(scene.db, sql`LOCK TABLE provider_calls IN SHARE MODE`)
    const before = (await scene.books.payments()).length
    const crowd = Promise.all(Array.from({ length: 64 }, () => shop.checkout(newKey())))
    await until(() => service.deps.twins.size === 64, { what: 'all are under way' })
    await claims.release()
    await until(async () => (await scene.books.payments()).length === before + 64, { what: 'all are charged' })
    await settles.release()
    expect(new Set((await crowd).map(({ status }) => status))).toEqual(new Set([201]))
    // Two groups of each are in flight, and the rest follows in groups of up to 32.
    expect(tap.statements().filter((each) => claimOrSettle(each) !== 'other').length).toBeLessThanOrEqual(12)
  })

  it('and its 50 twins together: two statements', async () => {
    const key = newKey()
    const statements = await countedAround(async () => {
      const replies = await Promise.all(Array.from({ length: 51 }, () => shop.checkout(key)))
      expect(new Set(replies.map((reply) => reply.text)).size).toBe(1)
      return replies[0] as (typeof replies)[0]
    }, 201)
    expect(statements.map(claimOrSettle)).toEqual(['claim', 'settle'])
  })
})

describe('a repeat of a settled attempt', () => {
  it('is one statement, and the next one none', async () => {
    const key = newKey()
    const first = await scene.shop.checkout(key)
    for (const statements of [1, 0]) {
      tap.clear()
      const repeats: Reply[] = []
      expect(
        await countedAround(async () => {
          const repeat = await shop.checkout(key)
          repeats.push(repeat)
          return repeat
        }, 201),
      ).toHaveLength(statements)
      expect(repeats.map(({ text, replayed }) => [text, replayed])).toEqual([[first.text, true]])
    }
  })

  it('is none for the process that has just settled it', async () => {
    for (const [body, status] of [
      [cart(), 201],
      [cart({ payment_method: 'pm_card_chargeDeclined' }), 402],
    ] as const) {
      const key = newKey()
      const first = await shop.checkout(key, body)
      tap.clear()
      expect(await countedAround(() => shop.checkout(key, body), status)).toEqual([])
      expect((await shop.checkout(key, body)).text).toBe(first.text)
    }
  })

  it('reads again for another request: only the row tells what differs', async () => {
    const key = newKey()
    await shop.checkout(key)
    tap.clear()
    const other = await shop.checkout(key, cart({ items: [{ sku: 'tee', quantity: 1 }] }))
    expect([other.status, other.json.differing]).toEqual([409, ['items']])
    expect(tap.statements()).toHaveLength(1)
  })

  it('reads again with a key of another tenant, and while the order is open', async () => {
    const key = newKey()
    await shop.checkout(key)
    const other = await shop.withKey(keys.otherStorefront).checkout(key)
    expect([other.status, other.replayed]).toEqual([201, false])
    const open = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required' })
    const first = await shop.checkout(open, body)
    await scene.books.act(first.json.payment.reference, 'succeed')
    await until(async () => (await shop.checkout(open, body)).status === 201, { what: 'the bank has said yes' })
  })

  it('writes nothing: it is answered by a database that takes no writes', async () => {
    const answers = new Map<string, string>()
    for (const body of [cart(), cart({ payment_method: 'pm_card_chargeDeclined' })]) {
      const key = newKey()
      answers.set(key, (await scene.shop.checkout(key, body)).text)
      answers.set(`${key} body`, JSON.stringify(body))
    }
    const name = new URL(database.url).pathname.slice(1)
    await sql.raw(`ALTER DATABASE ${name} SET default_transaction_read_only = on`).execute(scene.db)
    try {
      // The setting holds for new connections.
      await endConnections()
      for (const [key, text] of [...answers].filter(([key]) => !key.endsWith(' body'))) {
        const body = JSON.parse(answers.get(`${key} body`) as string)
        const repeat = await scene.shop.checkout(key, body)
        expect([repeat.text, repeat.replayed]).toEqual([text, true])
        expect((await scene.shop.get(`/v1/checkouts/${key}`)).status).toBe(200)
      }
      // And it is true that it takes none.
      expect((await scene.shop.checkout(newKey())).status).toBeGreaterThanOrEqual(500)
    } finally {
      await sql
        .raw(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
        .execute(scene.db)
        .catch(resetElsewhere)
      await endConnections()
    }
  })
})

describe('a crowd that waits for attempts of another process', () => {
  it('costs one poll at a time for all of them, and each of its keys two statements', async () => {
    const busy = await startServiceProcess(scene.env(), { 'checkout.claimed': { do: 'pause', every: true } })
    const awaited = Array.from({ length: 10 }, newKey)
    const first = awaited.map((key) => busy.shop.checkout(key))
    await busy.reached('checkout.claimed', awaited.length)
    tap.clear()
    const waiting = awaited.flatMap((key) => Array.from({ length: 10 }, () => shop.checkout(key)))
    const polls = () => tap.statements().filter((each) => each.includes("state = 'running'"))
    await until(
      () => tap.statements().filter((each) => claimOrSettle(each) === 'claim').length > 0 && polls().length >= 5,
      {
        what: 'five polls',
      },
    )
    const others = tap.statements().filter((each) => !polls().includes(each))
    // 100 requests: what is asked beside the polls does not grow with them.
    expect(others.length).toBeLessThanOrEqual(awaited.length)
    busy.resume('checkout.claimed')
    await Promise.all(first)
    for (const reply of await Promise.all(waiting)) expect([reply.status, reply.replayed]).toEqual([201, true])
    expect(tap.statements().length - polls().length).toBeLessThanOrEqual(2 * awaited.length + 1)
    await busy.stop()
  })
})

/** The statements of one request, without those that look an API key up. */
async function countedAround(send: () => Promise<{ status: number; text: string }>, status: number): Promise<string[]> {
  const reply = await send()
  expect(reply.status, reply.text).toBe(status)
  return tap.statements().filter((each) => !each.includes('api_keys'))
}

function claimOrSettle(statement: string): 'claim' | 'settle' | 'other' {
  if (statement.includes('claim_checkouts')) return 'claim'
  return statement.includes('settle_orders') ? 'settle' : 'other'
}

function whole(): Record<string, unknown> {
  return cart({
    cart_id: newKey(),
    currency: 'EUR',
    expected_total: 1250,
    shipping_address: { line1: 'Main Street 1', city: 'Town', country: 'DE' },
    metadata: { note: 'x' },
  })
}

async function endConnections(): Promise<void> {
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()`.execute(scene.db)
}

async function resetElsewhere(): Promise<void> {
  await sql
    .raw(
      `SET default_transaction_read_only = off; ALTER DATABASE ${new URL(database.url).pathname.slice(1)} RESET default_transaction_read_only`,
    )
    .execute(scene.db)
}
