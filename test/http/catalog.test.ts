import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
const stock: Record<string, number> = {}
beforeAll(async () => {
  scene = await startScene()
})
afterEach(() => expectBooksInOrder(scene, { stock }))
afterAll(() => scene.stop())

const product = { name: 'Cup', unit_price: 900, currency: 'EUR', available: 7 }

describe('a product', () => {
  it('is put and read back, put again and replaced', async () => {
    const made = await put('cup', product)
    expect([made.status, made.json]).toEqual([200, { object: 'product', sku: 'cup', ...product }])
    const changed = await put('cup', { ...product, name: 'Big cup', unit_price: 950, available: 3 })
    expect(changed.json).toEqual({
      object: 'product',
      sku: 'cup',
      name: 'Big cup',
      unit_price: 950,
      currency: 'EUR',
      available: 3,
    })
    for (const client of [scene.shop, scene.backend, scene.admin]) {
      expect((await client.get('/v1/products/cup')).json).toEqual(changed.json)
    }
    expect((await put('cup', { ...product, available: 3 })).json.name).toBe('Cup')
  })

  it('of another tenant is another one: neither seen nor changed', async () => {
    await put('own', product)
    const other = scene.backend.withKey(keys.otherBackend)
    expect((await other.get('/v1/products/own')).status).toBe(404)
    expect((await other.put('/v1/products/own', { ...product, unit_price: 1 })).status).toBe(200)
    expect((await scene.shop.get('/v1/products/own')).json.unit_price).toBe(900)
    expect((await scene.shop.checkout(newKey(), cart({ items: [{ sku: 'own', quantity: 1 }] }))).json.total).toBe(900)
    stock.own = 7
  })

  it('that is not there is a 404', async () => {
    for (const sku of ['nothing', 'a%2Fb', encodeURIComponent('ü'), 'x'.repeat(300)]) {
      expectProblem(await scene.shop.get(`/v1/products/${sku}`), 404, 'not_found')
    }
  })

  it('may have any SKU of visible characters, percent-encoded in the path', async () => {
    for (const sku of ['a/b', 'x?y', '50%', 'a+b', '#1', 'T-Shirt:XL']) {
      const path = `/v1/products/${encodeURIComponent(sku)}`
      expect((await scene.backend.put(path, product)).json.sku).toBe(sku)
      expect((await scene.shop.get(path)).json.sku).toBe(sku)
      stock[sku] = 7
      expect((await scene.shop.checkout(newKey(), cart({ items: [{ sku, quantity: 1 }] }))).status).toBe(201)
    }
  })

  const refused: [string, unknown, RegExp][] = [
    ['no name', { ...product, name: undefined }, /name/],
    ['an empty name', { ...product, name: '' }, /name/],
    ['a name with a NUL', { ...product, name: 'a\0' }, /name.*NUL/],
    ['half a price', { ...product, unit_price: 9.5 }, /unit_price/],
    ['a negative price', { ...product, unit_price: -1 }, /unit_price/],
    ['a price as a string', { ...product, unit_price: '900' }, /unit_price/],
    [
      'a price beyond 2^53',
      '{"name":"x","unit_price":9007199254740993,"currency":"EUR","available":1}',
      /unit_price.*2\^53/,
    ],
    ['negative stock', { ...product, available: -1 }, /available/],
    ['stock beyond 2^53', { ...product, available: 2 ** 53 }, /available.*2\^53/],
    ['a lower-case currency', { ...product, currency: 'eur' }, /currency/],
    ['an unknown field', { ...product, price: 1 }, /price/],
    ['another SKU than in the path', { ...product, sku: 'other' }, /sku/],
    ['no object', [], /object/],
    ['no JSON', '{', /JSON/],
  ]
  it.each(refused)('is refused with %s, and stays as it was', async (_what, body, says) => {
    await put('kept', product)
    const reply = await put('kept', body)
    expectProblem(reply, 400, 'invalid_request')
    expect(reply.json.detail).toMatch(says)
    expect(reply.json.new_key_safe).toBeUndefined()
    expect((await scene.shop.get('/v1/products/kept')).json).toEqual({ object: 'product', sku: 'kept', ...product })
  })

  it('in a currency that cards are not charged in is a 422', async () => {
    expectProblem(await put('gold', { ...product, currency: 'XAU' }), 422, 'currency_mismatch')
    expectProblem(await scene.shop.get('/v1/products/gold'), 404, 'not_found')
  })

  it('at a price that the provider takes in no amount is a 422', async () => {
    const reply = await put('dinar', { ...product, unit_price: 1001, currency: 'KWD' })
    expectProblem(reply, 422, 'amount_not_chargeable')
    expect(reply.json.step).toBe(10)
    expectProblem(await scene.shop.get('/v1/products/dinar'), 404, 'not_found')
    expect((await put('dinar', { ...product, unit_price: 1010, currency: 'KWD' })).json.unit_price).toBe(1010)
    stock.dinar = 7
  })

  it('is put by the backend alone', async () => {
    expectProblem(await scene.shop.put('/v1/products/cup', product), 403, 'forbidden')
    expectProblem(await scene.admin.put('/v1/products/cup', product), 403, 'forbidden')
    expectProblem(await scene.shop.withKey('nobody').put('/v1/products/cup', product), 401, 'unauthorized')
    expectProblem(await scene.shop.withKey('nobody').get('/v1/products'), 401, 'unauthorized')
  })

  it('put while it is being sold: every order has one of its prices, whole, and the stock adds up from what was set last', async () => {
    await put('busy', { ...product, available: 1_000_000 })
    const puts: Promise<Reply>[] = []
    const orders: Promise<Reply>[] = []
    for (let i = 0; i < 60; i++) {
      orders.push(scene.shop.checkout(newKey(), cart({ items: [{ sku: 'busy', quantity: 2 }] })))
      if (i % 6 === 0)
        puts.push(put('busy', { ...product, name: `Cup ${i}`, unit_price: 1000 + i, available: 1_000_000 }))
    }
    expect((await Promise.all(puts)).map((reply) => reply.status)).toEqual(puts.map(() => 200))
    for (const reply of await Promise.all(orders)) {
      expect(reply.status).toBe(201)
      const [line] = reply.json.lines
      expect(line.name).toBe(line.unit_price === 900 ? 'Cup' : `Cup ${line.unit_price - 1000}`)
      expect([line.amount, reply.json.total]).toEqual([2 * line.unit_price, 2 * line.unit_price])
    }
    await put('busy', { ...product, available: 10 })
    stock.busy = 10 + 120
    expect((await scene.shop.checkout(newKey(), cart({ items: [{ sku: 'busy', quantity: 4 }] }))).status).toBe(201)
    expect((await scene.shop.get('/v1/products/busy')).json.available).toBe(6)
  })

  it('whose price changes between the page and the click is refused to who said what they expect', async () => {
    await put('fair', { ...product, available: 7 })
    stock.fair = 7
    const body = cart({ items: [{ sku: 'fair', quantity: 1 }], expected_total: 900 })
    await put('fair', { ...product, unit_price: 1900 })
    const key = newKey()
    expect((await scene.shop.checkout(key, body)).json).toMatchObject({ code: 'price_changed', total: 1900 })
    expect((await scene.shop.checkout(key, { ...body, expected_total: 1900 })).json.total).toBe(1900)
  })
})

describe('a URL with a NUL', () => {
  it('is refused on every path, where a database would choke on it', async () => {
    for (const path of [
      '/v1/products/%00',
      '/v1/products?cursor=%00',
      '/v1/orders/a%00b',
      '/v1/orders?status=%00',
      '/v1/checkouts/%00',
    ]) {
      const reply = await scene.backend.get(path)
      expectProblem(reply, 400, 'invalid_request')
      expect(reply.json.detail).toMatch(/NUL/)
    }
  })
})

describe('the catalog', () => {
  it('comes in pages by SKU: each product once, however they are cut', async () => {
    for (let i = 0; i < 12; i++) await put(`page-${String(i).padStart(2, '0')}`, product)
    const whole = await pagesOf(scene.shop, '/v1/products', 100)
    const skus = whole.map((each) => each.sku)
    expect(skus).toEqual([...new Set(skus)].sort())
    expect(skus).toEqual(expect.arrayContaining(['mug', 'page-00', 'page-11', 'rare', 'tee']))
    for (const limit of [1, 5, 7]) expect(await pagesOf(scene.shop, '/v1/products', limit)).toEqual(whole)
    const first = await scene.shop.get('/v1/products?limit=5')
    expect(first.json).toMatchObject({ object: 'list', has_more: true, next_cursor: expect.any(String) })
    const last = await scene.shop.get('/v1/products?limit=100')
    expect(last.json).toMatchObject({ has_more: false, next_cursor: null })
  })

  it.each([
    'limit=0',
    'limit=1.5',
    'limit=1e1',
    'limit=0x10',
    'limit=true',
    'limit=%205',
    'limit=5n',
    'limit=101',
    'limit=-1',
    'limit=x',
    'limit=',
    'cursor=',
    'cursor=%20',
    'cursor=AA',
    'cursor=!!',
    'page=2',
    'limit=1&limit=2',
    'sku=mug',
  ])('refuses ?%s', async (query) => {
    expectProblem(await scene.shop.get(`/v1/products?${query}`), 400, 'invalid_request')
  })
})

async function pagesOf(client: Client, path: string, limit: number): Promise<{ sku: string }[]> {
  const all: { sku: string }[] = []
  let cursor = ''
  for (;;) {
    const { status, json } = await client.get(`${path}?limit=${limit}${cursor}`)
    expect(status).toBe(200)
    expect(json.data.length).toBeLessThanOrEqual(limit)
    all.push(...json.data)
    if (!json.has_more) return all
    cursor = `&cursor=${json.next_cursor}`
  }
}

function put(sku: string, body: unknown): Promise<Reply> {
  return scene.backend.put(`/v1/products/${sku}`, body)
}

function expectProblem(reply: Reply, status: number, code: string): void {
  expect([reply.status, reply.json?.code, reply.headers.get('content-type')], reply.text).toEqual([
    status,
    code,
    'application/problem+json; charset=utf-8',
  ])
}
