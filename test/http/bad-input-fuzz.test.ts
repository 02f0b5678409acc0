import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, keys, type Reply } from '../support/client.ts'
import { sendRaw } from '../support/raw-http.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

/** FUZZ_SEED repeats a run; a failure prints its seed and path too. */
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
const numRuns = Number(process.env.FUZZ_RUNS ?? 150)

let scene: Scene
beforeAll(async () => {
  console.log(`FUZZ_SEED=${seed}`)
  scene = await startScene()
})
afterAll(() => scene.stop())

/** A body in which every field is there, for the fuzzer to break. */
const wholeBody = cart({
  cart_id: 'cart-1',
  currency: 'EUR',
  expected_total: 1250,
  capture: 'automatic',
  shipping_address: { line1: 'Main Street 1', city: 'Town', country: 'DE' },
  metadata: { note: 'x' },
})

const nastyText = fc.oneof(
  fc.constantFrom(
    '',
    '\0',
    '\ud800',
    '\udc00x',
    '__proto__',
    'constructor',
    'toString',
    'é',
    'e\u0301',
    '💳',
    '\u2028',
    "'; DROP TABLE orders; --",
    '%00',
    '../..',
  ),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'binary-ascii', maxLength: 20 }),
)
const nastyValue = fc.oneof(
  fc.constantFrom(null, true, false, 0, -0, -1, 1.5, 1e21, 1e308, 2 ** 53, 2 ** 31, -(2 ** 63), [], {}, [[]], [null]),
  nastyText,
  fc.integer(),
  fc.double(),
  fc.jsonValue({ maxDepth: 4 }),
)

/** Where in the body: a path of keys, taken modulo what is there. */
const mutation = fc.record({
  path: fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
  value: nastyValue,
  newKey: fc.option(nastyText, { nil: undefined }),
})

describe('whatever is sent as a checkout', () => {
  it('as a body that is almost right gets an answer below 500, and a refusal leaves no attempt', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
        const body = structuredClone(wholeBody)
        body.cart_id = newKey()
        for (const each of mutations) mutate(body, each)
        await expectSound(JSON.stringify(body), 'application/json')
      }),
      { seed, numRuns },
    )
  })

  it('as any bytes gets an answer below 500, and a refusal leaves no attempt', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 2000 }),
          fc.json({ maxDepth: 8 }).map((text) => Buffer.from(text)),
          // The right text with some bytes of it turned into others.
          fc.array(fc.tuple(fc.nat(500), fc.nat(255)), { minLength: 1, maxLength: 4 }).map((changes) => {
            const bytes = Buffer.from(JSON.stringify(wholeBody))
            for (const [at, byte] of changes) bytes[at % bytes.length] = byte
            return bytes
          }),
        ),
        fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'application/json;;'),
        expectSound,
      ),
      { seed, numRuns },
    )
  })

  it('under any key header gets an answer below 500, and only a valid key makes an attempt', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.string({
            unit: fc
              .integer({ min: 32, max: 255 })
              .filter((code) => code !== 127)
              .map((code) => String.fromCharCode(code)),
            maxLength: 210,
          }),
          { maxLength: 2 },
        ),
        async (values) => {
          const headers = values.flatMap((value) => ['Idempotency-Key', value])
          const reply = await send(
            headers,
            JSON.stringify(cart({ items: [{ sku: 'unknown', quantity: 1 }] })),
            'application/json',
          )
          expect([400, 422]).toContain(reply.status)
          expectProblem(reply)
        },
      ),
      { seed, numRuns },
    )
  })
})

afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
})

async function expectSound(body: string | Uint8Array, type: string): Promise<void> {
  const key = newKey()
  const reply = await send(['Idempotency-Key', key], body, type)
  expect(reply.status, reply.text).toBeLessThan(500)
  if (reply.status >= 400) expectProblem(reply)
  const attempts = await scene.db.selectFrom('attempts').select('state').where('key', '=', key).execute()
  // A decline is an answer of an attempt; every other refusal comes before there is one.
  expect(attempts.length, reply.text).toBe(reply.status < 400 || reply.status === 402 ? 1 : 0)
}

function send(headers: string[], body: string | Uint8Array, type: string): Promise<Reply> {
  return sendRaw(scene.shop.url, {
    method: 'POST',
    path: '/v1/checkouts',
    headers: ['Authorization', `Bearer ${keys.storefront}`, 'Content-Type', type, ...headers],
    body,
  })
}

function expectProblem(reply: Reply): void {
  expect(reply.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
  expect(reply.json).toMatchObject({ status: reply.status, code: expect.any(String), detail: expect.any(String) })
  expect(typeof reply.json.new_key_safe, reply.text).toBe('boolean')
}

function mutate(
  root: Record<string, unknown>,
  change: { path: number[]; value: unknown; newKey: string | undefined },
): void {
  let at: unknown = root
  for (const [depth, step] of change.path.entries()) {
    if (typeof at !== 'object' || at === null) return
    const holder = at as Record<string, unknown>
    const names = Object.keys(holder)
    const name = names[step % Math.max(1, names.length)]
    if (depth < change.path.length - 1 && name !== undefined) {
      at = holder[name]
      continue
    }
    const target = change.newKey ?? name ?? 'x'
    Object.defineProperty(holder, target, { value: change.value, enumerable: true, configurable: true, writable: true })
  }
}
