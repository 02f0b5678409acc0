import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keys } from '../support/client.ts'
import { type Placed, place, refund } from '../support/money-back.ts'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
let orders: Placed[]
beforeAll(async () => {
  scene = await startScene()
  orders = [await place(scene), await place(scene), await place(scene)]
  for (const amount of [100, 200, 300]) await refund(scene.backend, orders[0]?.id ?? '', { amount })
})
afterAll(() => scene.stop())

describe('GET /ledger/transfers', () => {
  it('shows every line once over its pages, newest first', async () => {
    const seen: { id: string; created_at: string }[] = []
    let path: string | null = '/v1/ledger/transfers?limit=2'
    while (path !== null) {
      const { status, json } = await scene.backend.get(path)
      expect([status, json.object]).toEqual([200, 'list'])
      expect(json.data.length).toBeLessThanOrEqual(2)
      seen.push(...json.data)
      expect(json.has_more).toBe(json.next_cursor !== null)
      path = json.has_more ? `/v1/ledger/transfers?limit=2&cursor=${json.next_cursor}` : null
    }
    expect(seen).toHaveLength(6)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(6)
    expect(seen.map(({ created_at }) => created_at)).toEqual(
      seen
        .map(({ created_at }) => created_at)
        .sort()
        .reverse(),
    )
  })

  it('shows one order’s lines in their form', async () => {
    const id = orders[0]?.id
    const { json } = await scene.backend.get(`/v1/ledger/transfers?order_id=${id}`)
    expect(json.data).toHaveLength(4)
    expect(json.data[3]).toEqual({
      id: expect.stringMatching(/^tra_/),
      object: 'transfer',
      kind: 'capture',
      debit_account: 'provider_balance',
      credit_account: 'sales',
      amount: 2500,
      currency: 'EUR',
      order_id: id,
      created_at: expect.any(String),
    })
    expect(json.data.slice(0, 3)).toMatchObject([300, 200, 100].map((amount) => ({ kind: 'refund', amount })))
  })

  it('shows nothing of another tenant, to nobody but a backend, and takes no unknown filter', async () => {
    const other = scene.backend.withKey(keys.otherBackend)
    expect((await other.get('/v1/ledger/transfers')).json.data).toEqual([])
    expect((await other.get(`/v1/ledger/transfers?order_id=${orders[0]?.id}`)).json.data).toEqual([])
    expect((await other.get('/v1/ledger/balances')).json.data).toEqual([])
    for (const path of ['/v1/ledger/transfers', '/v1/ledger/balances']) {
      expect((await scene.shop.get(path)).status).toBe(403)
      expect((await scene.backend.get(`${path}?other=1`)).status).toBe(400)
    }
  })
})

describe('GET /ledger/balances', () => {
  it('sums debits less credits by account and currency, over all orders or for one', async () => {
    const all = (await scene.backend.get('/v1/ledger/balances')).json
    expect(all).toEqual({
      object: 'list',
      data: [
        { account: 'provider_balance', currency: 'EUR', balance: 6900 },
        { account: 'refunds', currency: 'EUR', balance: 600 },
        { account: 'sales', currency: 'EUR', balance: -7500 },
      ],
      has_more: false,
      next_cursor: null,
    })
    const one = (await scene.backend.get(`/v1/ledger/balances?order_id=${orders[0]?.id}`)).json
    expect(one.data).toMatchObject([{ balance: 1900 }, { balance: 600 }, { balance: -2500 }])
    expect((await scene.backend.get('/v1/ledger/balances?order_id=ord_none')).json.data).toEqual([])
  })
})
