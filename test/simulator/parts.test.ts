import { describe, expect, test } from 'vitest'
import { Books, Change } from '../../src/simulator/books.ts'
import { decodeForm } from '../../src/simulator/form.ts'
import { newId, seededRandom } from '../../src/simulator/random.ts'

describe('a form', () => {
  const plain = (text: string) => JSON.parse(JSON.stringify(decodeForm(text)))

  test.each([
    ['', {}],
    ['a=1&b=x%20y+z', { a: '1', b: 'x y z' }],
    ['a[b]=1&a[c][d]=2', { a: { b: '1', c: { d: '2' } } }],
    ['a[]=x&a[]=y', { a: ['x', 'y'] }],
    ['a[0]=x&a[1]=y', { a: ['x', 'y'] }],
    ['a[0][b]=x&a[1][b]=y', { a: [{ b: 'x' }, { b: 'y' }] }],
    ['a%5Bb%5D=%F0%9F%AB%90', { a: { b: '🫐' } }],
  ])('%s is read', (text, expected) => {
    expect(plain(text)).toEqual(expected)
  })

  test('reaches no prototype', () => {
    expect(Object.keys(decodeForm('__proto__[polluted]=1&constructor[prototype][polluted]=1'))).toEqual([
      '__proto__',
      'constructor',
    ])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test.each(['a=1&a[b]=2', `a${'[b]'.repeat(20)}=1`])('%s is refused', (text) => {
    expect(() => decodeForm(text)).toThrow()
  })
})

test('old events are forgotten, those that wait for delivery are not', () => {
  const books = new Books({ holdLifetimeMs: 1, settleDelayMs: 1 })
  const scope = { account: 'acct_1', livemode: false }
  const emit = () => new Change(books, null).emit('some.event', { object: 'hand_made', body: {} }, scope)
  const waiting = { ...emit(), pending: true }
  const first = emit()
  books.putEvent(waiting)
  books.putEvent(first)
  let last = first
  for (let at = 0; at < 30_000; at++) {
    last = emit()
    books.putEvent(last)
  }
  expect(books.events.size).toBeLessThanOrEqual(25_000)
  expect(books.events.peek(first.id)).toBeUndefined()
  expect(books.events.peek(waiting.id)).toEqual(waiting)
  const page = books.events.page(scope, { limit: 1 })
  expect(page).toEqual({ data: [last], has_more: true })
  expect(books.events.page(scope, { ending_before: last.id }).data).toEqual([])
})

test('ids are unique and look like the real ones', () => {
  const ids = Array.from({ length: 5000 }, () => newId('pi_'))
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^pi_[A-Za-z0-9]{24}$/)
})

test('a seed gives the same numbers again, spread evenly', () => {
  const numbers = (seed: number) => {
    const random = seededRandom(seed)
    return Array.from({ length: 2000 }, random)
  }
  expect(numbers(7)).toEqual(numbers(7))
  expect(numbers(7)).not.toEqual(numbers(8))
  const mean = numbers(7).reduce((sum, number) => sum + number, 0) / 2000
  expect(mean).toBeGreaterThan(0.47)
  expect(mean).toBeLessThan(0.53)
})
