import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

describe('a checkout', () => {
  it('creates one order and one charge, and a repeat gets the same bytes', async () => {
    const key = newKey()
    const first = await scene.shop.checkout(key, cart({ items: [{ sku: 'mug', quantity: 2 }] }))
    expect(first.status).toBe(201)
    expect(first.json).toMatchObject({ object: 'order', status: 'paid', total: 2500, captured: 2500, currency: 'EUR' })
    const repeat = await scene.shop.checkout(key, cart({ items: [{ sku: 'mug', quantity: 2 }] }))
    expect(repeat.text).toBe(first.text)
    expect([first.replayed, repeat.replayed]).toEqual([false, true])
    const payments = await scene.books.paymentsFor(key)
    expect(payments).toHaveLength(1)
    expect(payments[0]).toMatchObject({ status: 'succeeded', amount_received: 2500, requests: 1 })
  })

  it('that is declined ends as 402 and gives the stock back', async () => {
    const before = await stock('tee')
    const reply = await scene.shop.checkout(
      newKey(),
      cart({ items: [{ sku: 'tee', quantity: 3 }], payment_method: 'pm_card_chargeDeclinedInsufficientFunds' }),
    )
    expect(reply.status).toBe(402)
    expect(reply.json).toMatchObject({ code: 'card_declined', decline_code: 'insufficient_funds', new_key_safe: true })
    expect(await stock('tee')).toBe(before)
  })

  it('whose customer has to act waits with a client secret and is settled by a repeat once they have', async () => {
    const key = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required' })
    const first = await scene.shop.checkout(key, body)
    expect(first.status).toBe(202)
    expect(first.json.status).toBe('requires_action')
    expect(first.json.payment.client_secret).toMatch(/^pi_/)
    await scene.books.act(first.json.payment.reference, 'succeed')
    await scene.db
      .updateTable('orders')
      .set({ next_ask_at: new Date(0) })
      .where('attempt_key', '=', key)
      .execute()
    const repeat = await scene.shop.checkout(key, body)
    expect(repeat.status).toBe(201)
    expect(repeat.json).toMatchObject({ id: first.json.id, status: 'paid' })
    expect(repeat.json.payment.client_secret).toBeUndefined()
  })
})

async function stock(sku: string): Promise<number> {
  return (await scene.shop.get(`/v1/products/${sku}`)).json.available
}
