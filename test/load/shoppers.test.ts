/** The storm's shoppers: what they hold against the service, and what they do not. */
import { beforeEach, describe, expect, test } from 'vitest'
import { type Post, Shoppers } from '../../load/storm/shoppers.ts'
import { Tally } from '../../load/storm/tally.ts'

const paid = '{"id":"ord_1","status":"paid"}'
const replayed = { 'idempotent-replayed': 'true' }

let tally: Tally
let shoppers: Shoppers

beforeEach(() => {
  tally = new Tally()
  const options = { repeats: 0, conflicts: 0, twins: 2, declines: 0, products: 1, hotShare: 1, seed: 1 }
  shoppers = new Shoppers(options, { hot: 'mug', others: [] }, tally)
})

describe('one key, one answer', () => {
  test('the same answer again is a replay, or a wait where the first was not there yet', () => {
    const [first, twin] = [shoppers.next(), shoppers.next()]
    shoppers.answered(first, 201, paid, {})
    shoppers.answered(twin, 201, paid, replayed)
    shoppers.answered(shoppers.next(), 201, paid, replayed)

    expect(counts()).toEqual({ first: 1, wait: 1, replay: 1 })
    expect(shoppers.contradictions).toEqual([])
    expect(shoppers.unresolved()).toEqual([])
  })

  test('another body, even by a byte, is a contradiction', () => {
    const first = shoppers.next()
    shoppers.answered(first, 201, paid, {})
    shoppers.answered(shoppers.next(), 201, `${paid} `, replayed)

    expect(keysContradicted()).toEqual([first.attempt.key])
  })

  test('another status is a contradiction', () => {
    const first = shoppers.next()
    shoppers.answered(first, 201, paid, {})
    shoppers.answered(shoppers.next(), 402, paid, replayed)

    expect(keysContradicted()).toEqual([first.attempt.key])
  })

  test('a conflict is held against the service where the request was the same', () => {
    const first = shoppers.next()
    shoppers.answered(first, 409, '{"code":"idempotency_key_conflict"}', {})

    expect(keysContradicted()).toEqual([first.attempt.key])
  })
})

describe('what is not definite', () => {
  test('a refusal before any effect leaves the key free, and a later sale is fine', () => {
    const [first, twin] = [shoppers.next(), shoppers.next()]
    shoppers.answered(first, 409, '{"code":"out_of_stock"}', {})
    expect(shoppers.unresolved()).toEqual([])
    shoppers.answered(twin, 201, paid, {})

    expect(counts()).toEqual({ refused: 1, first: 1 })
    expect(shoppers.contradictions).toEqual([])
  })

  test('out of stock after the sale was told is a contradiction', () => {
    const first = shoppers.next()
    shoppers.answered(first, 201, paid, {})
    shoppers.answered(shoppers.next(), 409, '{"code":"out_of_stock"}', {})

    expect(keysContradicted()).toEqual([first.attempt.key])
  })

  test('202, 503 and a lost answer leave the shopper waiting, who comes back with the same key', async () => {
    const [open, refused, lost] = [shoppers.next(), shoppers.next(), shoppers.next()]
    shoppers.answered(open, 202, '{}', {})
    shoppers.answered(refused, 503, '{"code":"overloaded"}', {})
    shoppers.lost(lost)
    expect(counts()).toEqual({ unknown: 1, unavailable: 1, lost: 1 })

    const sent: Post[] = []
    await shoppers.comeBack(async (post) => void sent.push(post), shoppers.unresolved())

    expect(sent.map(({ attempt, kind }) => [attempt.key, kind])).toEqual([[open.attempt.key, 'retry']])
  })
})

test('the same seed makes the same carts', () => {
  const options = { repeats: 0, conflicts: 0, twins: 0, declines: 0.5, products: 5, hotShare: 0.2, seed: 42 }
  const skus = { hot: 'a', others: ['b', 'c', 'd', 'e'] }
  const carts = () => {
    const some = new Shoppers(options, skus, new Tally())
    return Array.from({ length: 50 }, () => JSON.parse(some.next().attempt.body)).map(
      ({ items, customer, payment_method }) => ({ items, customer, payment_method }),
    )
  }
  expect(carts()).toEqual(carts())
})

function counts(): Record<string, number> {
  return Object.fromEntries(tally.figures(1).map((figures) => [figures.class, figures.count]))
}

function keysContradicted(): string[] {
  return shoppers.contradictions.map(({ key }) => key)
}
