/** The idempotency contract: what a key is, whose it is, which requests are the same, what a replay is. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeDue } from '../support/aging.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys, type Reply } from '../support/client.ts'
import { sendRaw } from '../support/raw-http.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterEach(() => expectBooksInOrder(scene))
afterAll(() => scene.stop())

describe('the header', () => {
  /** Every form that names no key, and the code it gets. */
  const refused: [what: string, headers: string[], code: string][] = [
    ['absent', [], 'idempotency_key_missing'],
    ['empty', ['Idempotency-Key', ''], 'idempotency_key_invalid'],
    ['white space', ['Idempotency-Key', '   '], 'idempotency_key_invalid'],
    ['twice, different', ['Idempotency-Key', 'k1', 'Idempotency-Key', 'k2'], 'idempotency_key_invalid'],
    ['twice, equal', ['Idempotency-Key', 'k1', 'idempotency-key', 'k1'], 'idempotency_key_invalid'],
    ['joined by a proxy', ['Idempotency-Key', 'k1, k2'], 'idempotency_key_invalid'],
    ['joined and equal', ['Idempotency-Key', 'k1,k1'], 'idempotency_key_invalid'],
    ['with a space', ['Idempotency-Key', 'k 1'], 'idempotency_key_invalid'],
    ['with a tab', ['Idempotency-Key', 'k\t1'], 'idempotency_key_invalid'],
    ['not ASCII', ['Idempotency-Key', 'schlüssel'], 'idempotency_key_invalid'],
    ['a quote within', ['Idempotency-Key', 'k"1'], 'idempotency_key_invalid'],
    ['an open quote', ['Idempotency-Key', '"k1'], 'idempotency_key_invalid'],
    ['quotes around nothing', ['Idempotency-Key', '""'], 'idempotency_key_invalid'],
    ['quotes with a parameter', ['Idempotency-Key', '"k1";a=1'], 'idempotency_key_invalid'],
    ['quotes with an escape', ['Idempotency-Key', '"k\\1"'], 'idempotency_key_invalid'],
    ['201 characters', ['Idempotency-Key', 'k'.repeat(201)], 'idempotency_key_invalid'],
  ]
  it.each(refused)('%s: 400, nothing stored, the provider not called', async (_what, headers, code) => {
    const before = await footprint()
    const reply = await sendRaw(scene.shop.url, checkoutRequest(headers))
    expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([400, code, true])
    expect(await footprint()).toEqual(before)
  })

  it('takes every allowed character, 200 of them, and the provider gets the key as it is', async () => {
    const all = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).filter((each) => !',"'.includes(each))
    const key = all.join('').padEnd(200, 'x')
    const first = await scene.shop.checkout(key)
    expect(first.status).toBe(201)
    expect(await scene.books.paymentsFor(key)).toMatchObject([
      { idempotency_key: `ten_demo:${key}`, metadata: { key } },
    ])
    expect((await scene.shop.checkout(key)).text).toBe(first.text)
  })

  it('in quotes is the same key as without', async () => {
    const key = newKey()
    const first = await scene.shop.checkout(key)
    const quoted = await scene.shop.checkout(`"${key}"`)
    const padded = await sendRaw(scene.shop.url, checkoutRequest(['IDEMPOTENCY-KEY', `  ${key}\t`]))
    for (const reply of [quoted, padded]) expect([reply.replayed, reply.text]).toEqual([true, first.text])
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('distinguishes upper and lower case', async () => {
    const key = `Key-${newKey()}`
    const [upper, lower] = [await scene.shop.checkout(key), await scene.shop.checkout(key.toLowerCase())]
    expect([lower.status, lower.replayed]).toEqual([201, false])
    expect(lower.json.id).not.toBe(upper.json.id)
  })
})

describe('the scope of a key', () => {
  it('is the tenant: another API key of it, made by rotation, replays; the revoked one is refused', async () => {
    const key = newKey()
    const [oldApiKey, newApiKey] = [`pk_test_${newKey()}`, `pk_test_${newKey()}`]
    await addApiKey(oldApiKey)
    const first = await scene.shop.withKey(oldApiKey).checkout(key)
    await addApiKey(newApiKey)
    await scene.db
      .updateTable('api_keys')
      .set({ revoked_at: new Date() })
      .where('key_hash', '=', createHash('sha256').update(oldApiKey).digest())
      .execute()
    const repeat = await scene.shop.withKey(newApiKey).checkout(key)
    expect([repeat.status, repeat.replayed, repeat.text]).toEqual([201, true, first.text])
    expect((await scene.backend.checkout(key)).text).toBe(first.text)
    const refused = await until(
      async () => {
        const reply = await scene.shop.withKey(oldApiKey).checkout(key)
        return reply.status === 401 ? reply : undefined
      },
      { what: 'the revocation to take effect' },
    )
    // Not "nothing happened": the attempt that this key has made may have been charged, and was.
    expect(refused.json).toMatchObject({ code: 'unauthorized', new_key_safe: false })
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })

  it('is the tenant alone: another tenant with the same key has an attempt of its own, and sees nothing of this one', async () => {
    const key = newKey()
    const other = scene.shop.withKey(keys.otherStorefront)
    const mine = await scene.shop.checkout(key)
    expect((await other.get(`/v1/checkouts/${key}`)).status).toBe(404)
    expect((await other.post(`/v1/checkouts/${key}/cancel`)).status).toBe(404)
    const theirs = await other.checkout(key, cart({ items: [{ sku: 'tee', quantity: 1 }] }))
    expect([theirs.status, theirs.replayed]).toEqual([201, false])
    expect(theirs.json.id).not.toBe(mine.json.id)
    expect((await scene.books.paymentsFor(key)).map((payment) => payment.idempotency_key).sort()).toEqual([
      `ten_demo:${key}`,
      `ten_other:${key}`,
    ])
  })

  it('is all endpoints: a key that another kind of request has used is a conflict that names the path, both ways', async () => {
    const [ofRefund, ofCheckout] = [newKey(), newKey()]
    const order = await scene.shop.checkout(ofCheckout)
    const refunds = `/v1/orders/${order.json.id}/refunds`
    const refunded = await scene.backend.post(refunds, { amount: 50 }, { 'idempotency-key': ofRefund })
    expect([refunded.status, refunded.json.status]).toEqual([201, 'succeeded'])

    const reply = await scene.shop.checkout(ofRefund)
    expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([409, 'idempotency_key_conflict', false])
    expect(reply.json.differing).toEqual(['amount', 'customer', 'items', 'path', 'payment_method'])
    const again = await scene.backend.post(refunds, { amount: 50 }, { 'idempotency-key': ofCheckout })
    expect([again.status, again.json.code]).toEqual([409, 'idempotency_key_conflict'])
    expect(again.json.differing).toContain('path')
    expect(await scene.books.paymentsFor(ofRefund)).toEqual([])
    expect(await scene.books.paymentsFor(ofCheckout)).toMatchObject([{ refunds: [{ amount: 50 }] }])
    // It is no checkout, so there is nothing of it to see or to cancel here.
    expect((await scene.shop.get(`/v1/checkouts/${ofRefund}`)).status).toBe(404)
    expect((await scene.shop.post(`/v1/checkouts/${ofRefund}/cancel`)).status).toBe(404)
  })
})

describe('two requests are the same', () => {
  const body = {
    items: [
      { sku: 'mug', quantity: 1 },
      { sku: 'tee', quantity: 2 },
    ],
    customer: { email: 'zoe@example.com', name: 'Zo\u00e9' },
    payment_method: 'pm_card_visa',
    metadata: { b: '1', a: '2' },
  }
  const text = JSON.stringify(body)
  const same: [string, string][] = [
    ['with white space', JSON.stringify(body, null, 2)],
    ['with a trailing newline', `${text}\n`],
    [
      'with keys in another order, on every level',
      JSON.stringify({
        metadata: { a: '2', b: '1' },
        payment_method: body.payment_method,
        customer: { name: body.customer.name, email: body.customer.email },
        items: body.items.map(({ sku, quantity }) => ({ quantity, sku })),
      }),
    ],
    [
      'with escapes',
      text.replace('\u00e9', '\\u00e9').replace('"mug"', '"\\u006d\\u0075g"').replace('pm_card', 'pm\\u005fcard'),
    ],
    [
      'with numbers spelt otherwise',
      text.replace('"quantity":1', '"quantity":1.0').replace('"quantity":2', '"quantity":0.2e1'),
    ],
    ['with an explicit default', JSON.stringify({ ...body, capture: 'automatic' })],
  ]
  it.each(same)('%s: a replay', async (_what, other) => {
    const key = newKey()
    const first = await scene.shop.post('/v1/checkouts', text, { 'idempotency-key': key })
    expect(first.status).toBe(201)
    const repeat = await scene.shop.post('/v1/checkouts', other, { 'idempotency-key': key })
    expect([repeat.status, repeat.replayed, repeat.text]).toEqual([201, true, first.text])
  })

  it('with empty metadata or none: a replay, in both directions', async () => {
    for (const [one, two] of [
      [cart({ metadata: {} }), cart()],
      [cart(), cart({ metadata: {}, capture: 'automatic' })],
    ]) {
      const key = newKey()
      const first = await scene.shop.checkout(key, one)
      expect((await scene.shop.checkout(key, two)).text).toBe(first.text)
    }
  })

  const different: [string, unknown, string[]][] = [
    ['items in another order', { ...body, items: body.items.toReversed() }, ['items']],
    ['an accent composed of two', { ...body, customer: { ...body.customer, name: 'Zoe\u0301' } }, ['customer']],
    ['another quantity', { ...body, items: [body.items[0], { sku: 'tee', quantity: 3 }] }, ['items']],
    ['another email', { ...body, customer: { ...body.customer, email: 'ZOE@example.com' } }, ['customer']],
    ['metadata left out', { ...body, metadata: undefined }, ['metadata']],
    ['a field more', { ...body, expected_total: 6250 }, ['expected_total']],
    ['manual capture', { ...body, capture: 'manual' }, ['capture']],
    [
      'several at once',
      { ...body, payment_method: 'pm_card_amex', cart_id: 'c', currency: 'EUR' },
      ['cart_id', 'currency', 'payment_method'],
    ],
  ]
  it.each(different)(
    'but not with %s: a conflict, however often, that names what differs',
    async (_what, other, differing) => {
      const key = newKey()
      await scene.shop.post('/v1/checkouts', text, { 'idempotency-key': key })
      for (let i = 0; i < 2; i++) {
        const reply = await scene.shop.post('/v1/checkouts', other, { 'idempotency-key': key })
        expect([reply.status, reply.json.code, reply.replayed]).toEqual([409, 'idempotency_key_conflict', false])
        expect(reply.json).toMatchObject({ differing, new_key_safe: false })
        expect(reply.text).not.toMatch(/zoe|ZOE/)
      }
      expect(await scene.books.paymentsFor(key)).toHaveLength(1)
    },
  )

  it('numbers beyond 2^53 never collapse into each other: they are refused', async () => {
    const key = newKey()
    for (const total of ['9007199254740992', '9007199254740993']) {
      const reply = await scene.shop.post('/v1/checkouts', `{"expected_total":${total}}`, { 'idempotency-key': key })
      expect([reply.status, reply.json.code]).toEqual([400, 'invalid_request'])
    }
  })

  it('a request is validated before its key is looked at: an invalid body under a used key is no conflict', async () => {
    const key = newKey()
    await scene.shop.checkout(key)
    const reply = await scene.shop.checkout(key, cart({ unknown: 1 }))
    // And a new key would be a second charge: this one has paid.
    expect([reply.status, reply.json.code, reply.json.new_key_safe]).toEqual([400, 'invalid_request', false])
  })
})

describe('a replay', () => {
  const fresh = ['date', 'x-request-id', 'idempotent-replayed', 'keep-alive', 'connection']
  const lasting = (reply: Reply) => Object.fromEntries([...reply.headers].filter(([name]) => !fresh.includes(name)))

  it.each([
    ['paid', cart(), 201],
    ['authorized', cart({ capture: 'manual' }), 201],
    ['declined', cart({ payment_method: 'pm_card_chargeDeclined' }), 402],
  ])(
    'of a checkout that was %s has status, bytes, Content-Type and Location of the first; only the marker is new',
    async (_what, body, status) => {
      const key = newKey()
      const first = await scene.shop.checkout(key, body)
      const repeat = await scene.shop.checkout(key, body)
      expect([first.status, first.replayed]).toEqual([status, false])
      expect([repeat.status, repeat.replayed, repeat.text]).toEqual([status, true, first.text])
      expect(lasting(repeat)).toEqual(lasting(first))
      expect(first.headers.get('location')).toBe(status === 201 ? `/v1/orders/${first.json.id}` : null)
      expect(repeat.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      expect(repeat.headers.get('set-cookie')).toBeNull()
    },
  )

  it('shows what was answered, not what the order became since', async () => {
    const key = newKey()
    const first = await scene.shop.checkout(key)
    await scene.backend.post(`/v1/orders/${first.json.id}/refunds`, { amount: 50 }, { 'idempotency-key': newKey() })
    expect((await scene.backend.get(`/v1/orders/${first.json.id}`)).json.status).toBe('partially_refunded')
    expect((await scene.shop.checkout(key)).text).toBe(first.text)
  })

  it('can be told by a page of another origin, which may also send the key', async () => {
    const key = newKey()
    const origin = { origin: 'https://shop.example' }
    const preflight = await scene.shop.send('OPTIONS', '/v1/checkouts', undefined, {
      ...origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,idempotency-key',
    })
    expect(preflight.status).toBeLessThan(300)
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('idempotency-key')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
    await scene.shop.checkout(key, cart(), origin)
    const repeat = await scene.shop.checkout(key, cart(), origin)
    expect(repeat.headers.get('access-control-allow-origin')).toBe('*')
    const exposed = repeat.headers.get('access-control-expose-headers')?.toLowerCase() ?? ''
    for (const name of ['idempotent-replayed', 'location', 'retry-after']) expect(exposed).toContain(name)
    // Refusals too, or the page sees no more than "network error".
    const refused = await scene.shop.checkout(key, cart({ unknown: 1 }), origin)
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([400, '*'])
  })

  it('of an open attempt is none: it tells where the order stands now', async () => {
    const key = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required' })
    const first = await scene.shop.checkout(key, body)
    const repeat = await scene.shop.checkout(key, body)
    expect([first.status, repeat.status, repeat.replayed]).toEqual([202, 202, false])
    expect(repeat.json).toMatchObject({ id: first.json.id, status: 'requires_action' })
    expect(repeat.json.payment.client_secret).toBe(first.json.payment.client_secret)
    await scene.books.act(first.json.payment.reference, 'fail')
    await makeDue(scene.db, key)
    const settled = await scene.shop.checkout(key, body)
    expect([settled.status, settled.json.code, settled.replayed]).toEqual([402, 'card_declined', false])
    const replay = await scene.shop.checkout(key, body)
    expect([replay.status, replay.replayed, replay.text]).toEqual([402, true, settled.text])
  })
})

describe('what is kept of a request', () => {
  it('is digests alone: nothing of the body, and of the key only what names it', async () => {
    const key = newKey()
    const secretName = 'Very Secret Person'
    await scene.shop.checkout(key, cart({ customer: { email: 'secret@example.com', name: secretName } }))
    const row = await scene.db.selectFrom('attempts').selectAll().where('key', '=', key).executeTakeFirstOrThrow()
    expect(JSON.stringify(row)).not.toMatch(/Secret Person|secret@example/)
    expect(row.digest).toHaveLength(32)
  })

  it('is compared under the secret that it was made with, after a new secret has come; the same body replays, another conflicts', async () => {
    const [before, after] = [newKey(), newKey()]
    const first = await scene.shop.checkout(before)
    const rotated = await scene.start({ DIGEST_SECRET: 'a newer secret,a digest secret for tests' })
    const shop: Client = scene.shop.at(rotated.url)
    expect((await shop.checkout(before)).text).toBe(first.text)
    const conflict = await shop.checkout(before, cart({ items: [{ sku: 'mug', quantity: 9 }] }))
    expect(conflict.json).toMatchObject({ code: 'idempotency_key_conflict', differing: ['items'] })
    // New ones use the new secret, which the old process does not have: it neither replays nor charges.
    const second = await shop.checkout(after)
    expect(second.status).toBe(201)
    const ids = await scene.db
      .selectFrom('attempts')
      .select('digest_secret_id')
      .where('key', 'in', [before, after])
      .execute()
    expect(new Set(ids.map((each) => each.digest_secret_id)).size).toBe(2)
    const blind = await scene.shop.checkout(after)
    expect([blind.status, blind.json.code, blind.json.new_key_safe]).toEqual([409, 'idempotency_key_expired', false])
    expect(await scene.books.paymentsFor(after)).toHaveLength(1)
  })

  it('is gone after retention: a very late repeat is told the order and charges nothing, whatever its body', async () => {
    const key = newKey()
    const first = await scene.shop.checkout(key)
    await scene.db
      .updateTable('attempts')
      .set({
        digest: null,
        digest_tags: null,
        digest_secret_id: null,
        response_status: null,
        response_body: null,
        swept_at: sql`now()`,
      })
      .where('key', '=', key)
      .execute()
    const later = scene.shop.at((await scene.start()).url)
    for (const body of [cart(), cart({ items: [{ sku: 'tee', quantity: 1 }] })]) {
      const late = await later.checkout(key, body)
      expect([late.status, late.json.code]).toEqual([409, 'idempotency_key_expired'])
      expect(late.json).toMatchObject({ order_id: first.json.id, new_key_safe: false })
    }
    expect((await scene.shop.get(`/v1/checkouts/${key}`)).json).toMatchObject({
      state: 'expired',
      new_key_safe: false,
      order: { id: first.json.id, status: 'paid' },
    })
    expect(await scene.books.paymentsFor(key)).toHaveLength(1)
  })
})

function checkoutRequest(headers: string[]) {
  return {
    method: 'POST',
    path: '/v1/checkouts',
    headers: ['Authorization', `Bearer ${keys.storefront}`, 'Content-Type', 'application/json', ...headers],
    body: JSON.stringify(cart()),
  }
}

async function footprint(): Promise<unknown> {
  const { count } = scene.db.fn
  const rows = await Promise.all(
    (['attempts', 'orders', 'stock_movements'] as const).map((table) =>
      scene.db.selectFrom(table).select(count('tenant_id').as('rows')).executeTakeFirstOrThrow(),
    ),
  )
  return [...rows, (await scene.books.payments()).length]
}

async function addApiKey(apiKey: string): Promise<void> {
  await scene.db
    .insertInto('api_keys')
    .values({
      key_hash: createHash('sha256').update(apiKey).digest(),
      tenant_id: 'ten_demo',
      role: 'storefront',
      label: 'rotated',
      revoked_at: null,
    })
    .execute()
}
