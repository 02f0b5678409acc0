/** Amounts, from the catalog to the provider and into the ledger: whole minor units of the right size, nothing rounded. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { currency } from '../../src/domain/currencies.ts'
import { expectBooksInOrder } from '../support/audit.ts'
import { cart, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
const stock: Record<string, number> = {}
beforeAll(async () => {
  scene = await startScene()
})
afterEach(() => expectBooksInOrder(scene, { stock }))
afterAll(() => scene.stop())

describe('an order', () => {
  it.each([
    ['EUR', 1250, 3, 3750, 3750, 'eur'],
    ['JPY', 500, 3, 1500, 1500, 'jpy'],
    ['KRW', 12_000, 1, 12_000, 12_000, 'krw'],
    ['KWD', 1230, 3, 3690, 3690, 'kwd'],
    ['ISK', 250, 2, 500, 50_000, 'isk'],
    ['UGX', 4000, 5, 20_000, 2_000_000, 'ugx'],
    ['HUF', 17_500, 1, 17_500, 17_500, 'huf'],
  ])(
    'in %s charges what its lines say, in the unit that the provider counts',
    async (code, unitPrice, quantity, total, atProvider, provided) => {
      await sell(code, unitPrice)
      const key = newKey()
      const reply = await scene.shop.checkout(
        key,
        cart({ items: [{ sku: code, quantity }], expected_total: total, currency: code }),
      )
      expect([reply.status, reply.json.total, reply.json.captured, reply.json.currency]).toEqual([
        201,
        total,
        total,
        code,
      ])
      expect(await scene.books.paymentsFor(key)).toMatchObject([
        { amount: atProvider, amount_received: atProvider, currency: provided },
      ])
      const lines = await scene.db
        .selectFrom('ledger_transfers')
        .selectAll()
        .where('order_id', '=', reply.json.id)
        .execute()
      expect(lines).toMatchObject([
        { kind: 'capture', debit_account: 'provider_balance', credit_account: 'sales', amount: total, currency: code },
      ])
    },
  )

  it('in a currency without decimals is found again by recovery, and by a repeat, at the same amount', async () => {
    await sell('ISK', 700)
    const key = newKey()
    const body = cart({ items: [{ sku: 'ISK', quantity: 1 }], capture: 'manual' })
    const reply = await scene.shop.checkout(key, body)
    expect(reply.json).toMatchObject({ status: 'authorized', total: 700 })
    expect(await scene.books.paymentsFor(key)).toMatchObject([{ amount_capturable: 70_000 }])
    expect((await scene.shop.checkout(key, body)).text).toBe(reply.text)
  })
})

describe('what the provider would not charge is refused before any effect', () => {
  const limits = (code: string) => currency(code) as NonNullable<ReturnType<typeof currency>>

  it.each(['EUR', 'JPY', 'KWD', 'UGX', 'HUF', 'GBP'])(
    'in %s: below the minimum, above the maximum, off the step',
    async (code) => {
      const { minimum, maximum, step } = limits(code)
      for (const total of [0, minimum - step, maximum + step, ...(step > 1 ? [minimum + 1] : [])]) {
        await sell(code, total - (total % step))
        // A price is off the step only where it is older than that rule.
        await scene.db.updateTable('products').set({ unit_price: total }).where('sku', '=', code).execute()
        const key = newKey()
        const reply = await buy(code, key)
        expect([reply.status, reply.json.code, reply.json.new_key_safe], String(total)).toEqual([
          422,
          'amount_not_chargeable',
          true,
        ])
        expect(reply.json).toMatchObject({ total, currency: code, minimum, maximum, step })
        expect((await scene.shop.get(`/v1/checkouts/${key}`)).status).toBe(404)
      }
      for (const total of [minimum, maximum]) {
        await sell(code, total)
        const reply = await buy(code, newKey())
        expect([reply.status, reply.json.total], String(total)).toEqual([201, total])
      }
    },
  )

  it('a sum that no integer of the database can hold, with what it is and not with a 500', async () => {
    await sell('EUR', 999_999_999_999, 'dear')
    for (const lines of [1, 10, 100]) {
      const items = Array.from({ length: lines }, () => ({ sku: 'dear', quantity: 1_000_000 }))
      const reply = await scene.shop.checkout(newKey(), cart({ items }))
      expect([reply.status, reply.json.code], reply.text).toEqual([422, 'amount_not_chargeable'])
      expect(reply.json.maximum).toBe(99_999_999)
    }
    // And with a total that is expected, of course, wrongly.
    const items = Array.from({ length: 100 }, () => ({ sku: 'dear', quantity: 1_000_000 }))
    const reply = await scene.shop.checkout(newKey(), cart({ items, expected_total: 1 }))
    expect([reply.status, reply.json.code], reply.text).toEqual([409, 'price_changed'])
  })

  it('a mix of currencies, also where one of them is asked for', async () => {
    await sell('JPY', 500)
    const items = [
      { sku: 'mug', quantity: 1 },
      { sku: 'JPY', quantity: 1 },
    ]
    for (const asked of [undefined, 'EUR', 'JPY', 'USD']) {
      const reply = await scene.shop.checkout(
        newKey(),
        cart({ items, ...(asked === undefined ? {} : { currency: asked }) }),
      )
      expect([reply.status, reply.json.code]).toEqual([422, 'currency_mismatch'])
    }
  })
})

async function sell(code: string, unitPrice: number, sku = code): Promise<void> {
  // So many that no test runs out, and the audit knows how many there were: what has been sold is taken off again.
  const before = (await scene.shop.get(`/v1/products/${sku}`)).json
  const available = before.available ?? 1_000_000_000
  stock[sku] ??= 1_000_000_000
  const reply = await scene.backend.put(`/v1/products/${sku}`, {
    name: sku,
    unit_price: unitPrice,
    currency: code,
    available,
  })
  expect(reply.status, reply.text).toBe(200)
}

function buy(sku: string, key: string): Promise<Reply> {
  return scene.shop.checkout(key, cart({ items: [{ sku, quantity: 1 }] }))
}
