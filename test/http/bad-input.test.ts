import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys, type Reply } from '../support/client.ts'
import { sendBytes, sendRaw } from '../support/raw-http.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
/** Whatever was sent, it has left nothing behind. */
afterEach(async () => {
  for (const table of ['attempts', 'orders', 'customers', 'carts', 'stock_movements'] as const) {
    expect(await scene.db.selectFrom(table).selectAll().execute()).toEqual([])
  }
  expect(await scene.books.payments()).toEqual([])
  await expectBooksInOrder(scene)
})
afterAll(() => scene.stop())

const address = { line1: 'Main Street 1', city: 'Town', country: 'DE' }

/** A body, and what the answer has to say of it. */
const refusedBodies: [what: string, body: unknown, says: RegExp][] = [
  ['an array', [], /object/],
  ['null', null, /object/],
  ['a string', '"cart"', /object/],
  ['a number', '1', /object/],
  ['no items', cart({ items: [] }), /items/],
  ['items that are no list', cart({ items: {} }), /items/],
  ['more than 100 items', cart({ items: Array(101).fill({ sku: 'mug', quantity: 1 }) }), /items/],
  ['an item that is no object', cart({ items: ['mug'] }), /items\/0/],
  ['a quantity of 0', cart({ items: [{ sku: 'mug', quantity: 0 }] }), /items\/0\/quantity/],
  ['a negative quantity', cart({ items: [{ sku: 'mug', quantity: -1 }] }), /items\/0\/quantity/],
  ['half a quantity', cart({ items: [{ sku: 'mug', quantity: 1.5 }] }), /items\/0\/quantity/],
  ['a quantity as a string', cart({ items: [{ sku: 'mug', quantity: '1' }] }), /items\/0\/quantity/],
  ['a quantity as a boolean', cart({ items: [{ sku: 'mug', quantity: true }] }), /items\/0\/quantity/],
  ['a quantity beyond a million', cart({ items: [{ sku: 'mug', quantity: 1_000_001 }] }), /items\/0\/quantity/],
  ['no quantity', cart({ items: [{ sku: 'mug' }] }), /items\/0.*quantity/],
  ['a price from the client', cart({ items: [{ sku: 'mug', quantity: 1, unit_price: 1 }] }), /unit_price/],
  ['an empty SKU', cart({ items: [{ sku: '', quantity: 1 }] }), /items\/0\/sku/],
  ['a SKU of 65 characters', cart({ items: [{ sku: 'x'.repeat(65), quantity: 1 }] }), /items\/0\/sku/],
  ['a SKU with a space', cart({ items: [{ sku: 'a mug', quantity: 1 }] }), /items\/0\/sku/],
  ['a SKU that is a number', cart({ items: [{ sku: 7, quantity: 1 }] }), /items\/0\/sku/],
  ['no customer', cart({ customer: undefined }), /customer/],
  ['a customer without an email', cart({ customer: {} }), /email/],
  ['an email that is none', cart({ customer: { email: 'ada' } }), /customer\/email/],
  [
    'an email with a line break',
    cart({ customer: { email: 'ada@example.com\nbcc:all@example.com' } }),
    /customer\/email/,
  ],
  ...[
    '"a,\r\n b"@example.com',
    '"a b"@example.com',
    'root@localhost',
    'a@[127.0.0.1]',
    'a@b',
    '<a@b.de>',
    'a@b.de,c@d.de',
  ].map((email): [string, unknown, RegExp] => [
    `an email like ${JSON.stringify(email)}`,
    cart({ customer: { email } }),
    /customer\/email/,
  ]),
  ['an email of 255 characters', cart({ customer: { email: `${'a'.repeat(243)}@example.com` } }), /customer\/email/],
  ['a name that is null', cart({ customer: { email: 'ada@example.com', name: null } }), /customer\/name/],
  [
    'a name of 201 characters',
    cart({ customer: { email: 'ada@example.com', name: 'x'.repeat(201) } }),
    /customer\/name/,
  ],
  ['an unknown field of the customer', cart({ customer: { email: 'ada@example.com', id: 'cus_1' } }), /id/],
  ['no payment method', cart({ payment_method: undefined }), /payment_method/],
  ['an empty payment method', cart({ payment_method: '' }), /payment_method/],
  ['a card number with spaces', cart({ payment_method: '4242 4242 4242 4242' }), /payment_method/],
  ['a path as a payment method', cart({ payment_method: '../customers' }), /payment_method/],
  ['an empty cart id', cart({ cart_id: '' }), /cart_id/],
  ['a cart id of 201 characters', cart({ cart_id: 'x'.repeat(201) }), /cart_id/],
  ['a cart id with a space', cart({ cart_id: 'a b' }), /cart_id/],
  ['a lower-case currency', cart({ currency: 'eur' }), /currency/],
  ['a negative expected total', cart({ expected_total: -1 }), /expected_total/],
  ['a fractional expected total', cart({ expected_total: 12.5 }), /expected_total/],
  ['an expected total beyond all', cart({ expected_total: 1_000_000_000_000 }), /expected_total/],
  ['another way to capture', cart({ capture: 'later' }), /capture/],
  ['an address without a city', cart({ shipping_address: { ...address, city: undefined } }), /city/],
  ['a country by name', cart({ shipping_address: { ...address, country: 'Germany' } }), /country/],
  ['an unknown field of the address', cart({ shipping_address: { ...address, planet: 'Earth' } }), /planet/],
  ['an unknown field', cart({ total: 1 }), /total/],
  ['a field named constructor', cart({ constructor: { prototype: {} } }), /constructor/],
  ['a field named toString', cart({ toString: 'x' }), /toString/],
  ['metadata that is a list', cart({ metadata: [] }), /metadata/],
  ['metadata with a number', cart({ metadata: { a: 1 } }), /metadata\/a/],
  ['metadata in metadata', cart({ metadata: { a: { b: 'c' } } }), /metadata\/a/],
  ['metadata with a value of 501 characters', cart({ metadata: { a: 'x'.repeat(501) } }), /metadata\/a/],
  ['metadata with a key of 41 characters', cart({ metadata: { ['k'.repeat(41)]: 'x' } }), /metadata/],
  ['metadata with an empty key', cart({ metadata: { '': 'x' } }), /metadata/],
  [
    'metadata with 21 entries',
    cart({ metadata: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, 'x'])) }),
    /metadata/,
  ],
  ['a NUL in a value', cart({ customer: { email: 'ada@example.com', name: 'A\0da' } }), /customer\/name.*NUL/],
  ['a NUL in a key', cart({ metadata: { 'a\0': 'x' } }), /metadata.*NUL/],
  ['a lone surrogate in a value', '{"metadata":{"a":"\\ud83d"}}', /metadata\/a.*surrogate/],
  ['a lone surrogate in a key', '{"metadata":{"\\ude00":"x"}}', /metadata.*surrogate/],
  ['a number beyond 2^53', '{"expected_total":9007199254740993}', /expected_total.*2\^53/],
  ['a number beyond all floats', '{"expected_total":1e400}', /expected_total.*2\^53/],
  ['minus a number beyond 2^53', '{"expected_total":-9007199254740993}', /expected_total.*2\^53/],
  ['__proto__', '{"__proto__":{"items":[]}}', /__proto__/],
  ['__proto__ within', '{"metadata":{"__proto__":"x"}}', /metadata.*__proto__/],
  ['the same key twice', '{"capture":"manual","items":[],"capture":"automatic"}', /same key twice/],
  [
    'the same key twice within, once escaped',
    '{"customer":{"email":"a@b.de","\\u0065mail":"b@b.de"}}',
    /same key twice/,
  ],
  ['lists 40 deep', `${'['.repeat(40)}${']'.repeat(40)}`, /deep/],
  ['lists 30000 deep', `${'['.repeat(30_000)}${']'.repeat(30_000)}`, /deep/],
  ['objects 5000 deep', `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`, /deep/],
  ['half a JSON text', '{"items":[', /JSON/],
  ['a trailing comma', '{"items":[],}', /JSON/],
  ['two JSON texts', '{}{}', /JSON/],
  ['single quotes', "{'items':[]}", /JSON/],
  ['NaN', '{"expected_total":NaN}', /JSON/],
  ['white space alone', '  \n', /JSON/],
  ['a byte order mark', Buffer.from('\ufeff{}'), /JSON/],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), /UTF-8/],
  [
    'UTF-8 cut off in three bytes',
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xf0, 0x9f, 0x98]), Buffer.from('"}')]),
    /UTF-8/,
  ],
  [
    'a surrogate in UTF-8',
    Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
    /UTF-8/,
  ],
  ['UTF-16', Buffer.from('{"items":[]}', 'utf16le'), /JSON|UTF-8/],
]

describe('a checkout body is refused, with what is wrong, where it is or has', () => {
  it.each(refusedBodies)('%s', async (_what, body, says) => {
    const reply = await scene.shop.post('/v1/checkouts', body, { 'idempotency-key': newKey() })
    expectProblem(reply, 400, 'invalid_request')
    expect(reply.json.detail).toMatch(says)
    expect(reply.json.new_key_safe).toBe(true)
  })

  it('of more than 64 KiB', async () => {
    const reply = await scene.shop.checkout(newKey(), cart({ metadata: { a: 'x'.repeat(65_536) } }))
    expectProblem(reply, 413, 'payload_too_large')
    expect(reply.json.new_key_safe).toBe(true)
  })

  it('none at all', async () => {
    const reply = await scene.shop.post('/v1/checkouts', undefined, { 'idempotency-key': newKey() })
    expectProblem(reply, 400, 'invalid_request')
    expect(reply.json.detail).toMatch(/body/)
    const empty = await sendRaw(scene.shop.url, post(['Content-Type', 'application/json', 'Idempotency-Key', newKey()]))
    expectProblem(empty, 400, 'invalid_request')
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'json',
    '',
  ])('of content type "%s"', async (type) => {
    const reply = await sendRaw(
      scene.shop.url,
      post(['Content-Type', type, 'Idempotency-Key', newKey()], JSON.stringify(cart())),
    )
    expectProblem(reply, 415, 'unsupported_media_type')
    expect(reply.json.new_key_safe).toBe(true)
  })

  it('that is said to be coded, whether it is or not', async () => {
    const body = JSON.stringify(cart())
    for (const [coding, bytes] of [
      ['gzip', body],
      ['gzip', gzipSync(body)],
      ['identity, br', body],
      ['x-unheard-of', body],
    ] as const) {
      const headers = ['Content-Type', 'application/json', 'Content-Encoding', coding, 'Idempotency-Key', newKey()]
      const reply = await sendRaw(scene.shop.url, post(headers, bytes))
      expectProblem(reply, 415, 'unsupported_media_type')
      expect(reply.json.detail).toMatch(/Content-Encoding/)
      expect(reply.headers.get('accept-encoding')).toBe('identity')
      expect(reply.json.new_key_safe).toBe(true)
    }
    const headers = ['Content-Type', 'application/json', 'Content-Encoding', 'Identity', 'Idempotency-Key', newKey()]
    expectProblem(await sendRaw(scene.shop.url, post(headers, '{}')), 400, 'invalid_request')
  })

  it('shorter or longer than its length', async () => {
    const head = `POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.storefront}\r\nConnection: close\r\nContent-Type: application/json\r\nIdempotency-Key: ${newKey()}\r\n`
    // The second half becomes a request of its own, which is none.
    const received = await sendBytes(scene.shop.url, `${head}Content-Length: 5\r\n\r\n{"items":[]}`)
    expect(received).toMatch(/^HTTP\/1\.1 400 /)
    expect(received).toMatch(/application\/problem\+json/)
  })

  it('with a query string on the path', async () => {
    const reply = await scene.shop.post('/v1/checkouts?expected_total=1', cart(), { 'idempotency-key': newKey() })
    expectProblem(reply, 400, 'invalid_request')
    expect(reply.json.detail).toMatch(/query string/)
  })
})

describe('a POST that needs no body', () => {
  const path = `/v1/checkouts/${newKey()}/cancel`

  it.each([undefined, {}])('takes %o as none', async (body) => {
    expectProblem(await scene.shop.post(path, body), 404, 'not_found')
  })

  it.each<[unknown, RegExp]>([
    [{ reason: 'late' }, /unknown: reason/],
    [[], /must be object/],
    ['null', /must be object/],
    ['"no"', /must be object/],
  ])('refuses %o with what is wrong', async (body, says) => {
    const reply = await scene.shop.post(path, body)
    expectProblem(reply, 400, 'invalid_request')
    expect(reply.json.detail).toMatch(says)
    expect(reply.json.errors).toHaveLength(1)
  })
})

describe('the door', () => {
  it('answers bytes that are no HTTP, and headers that are too large, with problem details and closes', async () => {
    for (const [bytes, status] of [
      ['GARBAGE\r\n\r\n', 400],
      ['GET / HTTP/9.9\r\n\r\n', 400],
      ['POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    ] as const) {
      const received = await sendBytes(scene.shop.url, bytes)
      expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*application/problem\\+json[^]*"status":${status}`))
    }
  })

  it.each([
    '/v1/checkouts/%',
    '/v1/checkouts/%zz',
    '/v1/checkouts/%E0%A4%A',
    '/v1/checkouts/%ff/cancel',
    '/v1/products/%C3%28',
  ])('answers the path %s, which cannot be decoded, with a 400', async (path) => {
    for (const method of ['GET', 'POST']) {
      const reply = await sendRaw(scene.shop.url, {
        method,
        path,
        headers: ['Authorization', `Bearer ${keys.storefront}`],
      })
      expectProblem(reply, 400, 'invalid_request')
      expect(reply.json.detail).toMatch(/percent-encoded/)
    }
  })

  it('answers a path that names nothing with a 404', async () => {
    expectProblem(await scene.shop.get(`/v1/products/${'s'.repeat(2000)}`), 404, 'not_found')
    expectProblem(await scene.shop.get('/v1/nothing'), 404, 'not_found')
    expectProblem(await scene.shop.get('/'), 404, 'not_found')
    expectProblem(await sendRaw(scene.shop.url, { method: 'GET', path: '/v1/checkouts/../products' }), 404, 'not_found')
    const trailing = await scene.shop.post('/v1/checkouts/', cart(), { 'idempotency-key': newKey() })
    expectProblem(trailing, 404, 'not_found')
    expect(trailing.json.new_key_safe).toBe(false)
  })

  it('names the methods of a path on a 405', async () => {
    const reply = await scene.shop.put('/v1/checkouts', cart())
    expectProblem(reply, 405, 'method_not_allowed')
    expect(reply.headers.get('allow')).toBe('POST')
    expect(reply.json.new_key_safe).toBe(false)
    expect((await scene.shop.delete('/v1/checkouts/some-key')).headers.get('allow')).toBe('GET, HEAD')
    expect((await scene.shop.post('/v1/products/mug', {})).headers.get('allow')).toBe('GET, HEAD, PUT')
  })

  it('asks for a key before it reads a body, and says so in problem details', async () => {
    for (const authorization of [
      undefined,
      'Bearer',
      'Bearer ',
      'Bearer wrong',
      `Basic ${keys.storefront}`,
      `Bearer ${keys.storefront} x`,
    ]) {
      const reply = await sendRaw(scene.shop.url, {
        method: 'POST',
        path: '/v1/checkouts',
        headers: [
          'Content-Type',
          'application/json',
          'Idempotency-Key',
          newKey(),
          ...(authorization === undefined ? [] : ['Authorization', authorization]),
        ],
        body: '{"broken":',
      })
      expectProblem(reply, 401, 'unauthorized')
      expect(reply.json.new_key_safe).toBe(false)
    }
  })
})

function post(headers: string[], body?: string | Uint8Array) {
  return {
    method: 'POST',
    path: '/v1/checkouts',
    headers: ['Authorization', `Bearer ${keys.storefront}`, ...headers],
    ...(body === undefined ? {} : { body }),
  }
}

function expectProblem(reply: Reply, status: number, code: string): void {
  expect({ status: reply.status, type: reply.headers.get('content-type'), body: reply.json }).toEqual({
    status,
    type: 'application/problem+json; charset=utf-8',
    body: expect.objectContaining({
      type: expect.any(String),
      title: expect.any(String),
      status,
      detail: expect.any(String),
      code,
      request_id: expect.stringMatching(/^req_/),
    }),
  })
}
