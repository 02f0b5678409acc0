import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectBooksInOrder } from '../support/audit.ts'
import { type Client, cart, keys, type Reply } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

interface Listed {
  id: string
  status: string
  metadata: Record<string, string>
}

let scene: Scene
let theirs: Client
/** Ids by status, in the order in which they were made. */
const made: Record<string, string[]> = {
  paid: [],
  authorized: [],
  payment_failed: [],
  requires_action: [],
  canceled: [],
}
beforeAll(async () => {
  scene = await startScene()
  theirs = scene.backend.withKey(keys.otherBackend)
  for (let i = 0; i < 3; i++) {
    made.paid?.push((await scene.shop.checkout(newKey(), cart({ metadata: { n: String(i) } }))).json.id)
    made.authorized?.push((await scene.shop.checkout(newKey(), cart({ capture: 'manual' }))).json.id)
    made.payment_failed?.push(
      (await scene.shop.checkout(newKey(), cart({ payment_method: 'pm_card_chargeDeclined' }))).json.order_id,
    )
    const threeD = cart({ payment_method: 'pm_card_threeDSecure2Required' })
    made.requires_action?.push((await scene.shop.checkout(newKey(), threeD)).json.id)
    const key = newKey()
    made.canceled?.push((await scene.shop.checkout(key, threeD)).json.id)
    await scene.shop.post(`/v1/checkouts/${key}/cancel`)
  }
  await theirs.checkout(newKey())
})
afterAll(async () => {
  await expectBooksInOrder(scene, { unfinished: true })
  await scene.stop()
})

describe('the orders of a tenant', () => {
  it('are listed newest first, each once, however the pages are cut', async () => {
    const whole = await pages(scene.backend, 100)
    expect(whole).toHaveLength(15)
    const ids = whole.map((order) => order.id)
    expect(ids).toEqual([...ids].sort().reverse())
    expect(new Set(ids)).toEqual(new Set(Object.values(made).flat()))
    for (const limit of [1, 4, 15]) expect(await pages(scene.backend, limit)).toEqual(whole)
  })

  it.each(Object.keys(made))('are listed by the status %s', async (status) => {
    const listed = await pages(scene.backend, 2, `&status=${status}`)
    expect(listed.map((order) => order.id)).toEqual(made[status]?.toReversed())
    expect(new Set(listed.map((order) => order.status))).toEqual(new Set([status]))
  })

  it('are listed by what came back of them', async () => {
    const [partly, wholly] = made.paid as [string, string]
    const refund = (id: string, refunded: number) =>
      scene.db.updateTable('orders').set({ refunded }).where('order_id', '=', id).execute()
    await refund(partly, 1)
    await refund(wholly, 1250)
    for (const [status, id] of [
      ['partially_refunded', partly],
      ['refunded', wholly],
    ] as const) {
      expect((await pages(scene.backend, 10, `&status=${status}`)).map((order) => [order.id, order.status])).toEqual([
        [id, status],
      ])
      expect((await scene.backend.get(`/v1/orders/${id}`)).json.status).toBe(status)
    }
    expect((await pages(scene.backend, 10, '&status=paid')).map((order) => order.id)).toEqual([made.paid?.[2]])
    await refund(partly, 0)
    await refund(wholly, 0)
  })

  it('new ones do not move a page that is being read', async () => {
    const first = await scene.backend.get('/v1/orders?limit=5')
    await scene.shop.checkout(newKey())
    const second = await scene.backend.get(`/v1/orders?limit=100&cursor=${first.json.next_cursor}`)
    const ids = [...first.json.data, ...second.json.data].map((order: Listed) => order.id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toHaveLength(15)
  })

  it('show their metadata, and neither who bought nor the secret of a payment', async () => {
    const [id] = made.paid as [string]
    const one = await scene.backend.get(`/v1/orders/${id}`)
    expect(one.json.metadata).toEqual({ n: '0' })
    const list = await scene.backend.get('/v1/orders?limit=100')
    expect(list.json.data.find((order: Listed) => order.id === id)).toEqual(one.json)
    expect(list.text).not.toMatch(/ada@example|client_secret|"Ada"/)
  })

  it('show where they are to be sent, to those who send them alone', async () => {
    const address = { name: 'Ada Lovelace', line1: '12 St James Square', city: 'London', country: 'GB' }
    const key = newKey()
    const body = cart({ payment_method: 'pm_card_threeDSecure2Required', shipping_address: address })
    const answer = await scene.shop.checkout(key, body)
    const path = `/v1/orders/${answer.json.id}`
    expect((await scene.backend.get(path)).json.shipping_address).toEqual(address)
    expect((await scene.admin.get(`/v1/admin${path.slice(3)}`)).json.shipping_address).toEqual(address)
    const canceled = await scene.shop.post(`/v1/checkouts/${key}/cancel`)
    for (const reply of [answer, canceled, await scene.shop.get(`/v1/checkouts/${key}`)]) {
      expect(reply.text).not.toContain('St James')
    }
    const person = answer.json.customer_id
    await scene.backend.delete(`/v1/customers/${person}/personal-data`)
    // Other orders of the same person are still open; this one has ended.
    expect((await scene.backend.get(path)).json.shipping_address).toBeUndefined()
  })

  it('are seen by no other tenant', async () => {
    for (const id of Object.values(made).flat()) expectProblem(await theirs.get(`/v1/orders/${id}`), 404, 'not_found')
    const listed = await pages(theirs, 100)
    expect(listed).toHaveLength(1)
    // A cursor is only a place in a list: under another tenant it shows that tenant's orders.
    const { next_cursor } = (await scene.backend.get('/v1/orders?limit=1')).json
    const reply = await theirs.get(`/v1/orders?cursor=${next_cursor}`)
    for (const order of reply.json.data) expect(order.id).toBe(listed[0]?.id)
  })

  it('are for the backend', async () => {
    const [id] = made.paid as [string]
    for (const path of ['/v1/orders', `/v1/orders/${id}`]) {
      expectProblem(await scene.shop.get(path), 403, 'forbidden')
      expectProblem(await scene.shop.withKey('nobody').get(path), 401, 'unauthorized')
    }
  })

  it.each(['ord_nothing', 'x', 'x'.repeat(500)])('%s is no order', async (id) => {
    expectProblem(await scene.backend.get(`/v1/orders/${id}`), 404, 'not_found')
  })

  it.each([
    'status=open',
    'status=',
    'status=PAID',
    'limit=0',
    'limit=101',
    'cursor=%00',
    'cursor=eA==',
    'sort=asc',
    'status=paid&status=paid',
  ])('refuse ?%s', async (query) => {
    expectProblem(await scene.backend.get(`/v1/orders?${query}`), 400, 'invalid_request')
  })
})

async function pages(client: Client, limit: number, filter = ''): Promise<Listed[]> {
  const all: Listed[] = []
  let cursor = ''
  for (;;) {
    const { status, json } = await client.get(`/v1/orders?limit=${limit}${filter}${cursor}`)
    expect(status).toBe(200)
    expect(json.object).toBe('list')
    expect(json.data.length).toBeLessThanOrEqual(limit)
    all.push(...json.data)
    if (!json.has_more) return all
    cursor = `&cursor=${json.next_cursor}`
  }
}

function expectProblem(reply: Reply, status: number, code: string): void {
  expect([reply.status, reply.json?.code, reply.headers.get('content-type')], reply.text).toEqual([
    status,
    code,
    'application/problem+json; charset=utf-8',
  ])
}
