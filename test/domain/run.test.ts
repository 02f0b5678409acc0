import { describe, expect, it } from 'vitest'
import { newId } from '../../src/domain/ids.ts'
import type { Order, OrderStatus } from '../../src/domain/order.ts'
import { amountToCapture, orderIdOf, runIdOf, runStatus } from '../../src/domain/run.ts'

describe('the ids of a run and its order', () => {
  it('name each other', () => {
    const orderId = newId('ord')
    expect(runIdOf(orderId)).toBe(`run_${orderId.slice(4)}`)
    expect(orderIdOf(runIdOf(orderId))).toBe(orderId)
  })

  it('are not taken for one another: no order has the id that an order, or nothing, is taken to name', () => {
    for (const text of [newId('ord'), '', 'run', newId('ref'), 'xrun_1']) expect(orderIdOf(text)).toBe('')
  })
})

describe('the amount to capture', () => {
  it.each([
    [0, 1000, 1, 0],
    [1, 1000, 1, 1],
    [1000, 1000, 1, 1000],
    [1001, 1000, 1, 1000],
    [1234, 2000, 10, 1230],
    [9, 2000, 10, 0],
    [2005, 2000, 10, 2000],
  ])('of %i used, %i on hold, in steps of %i is %i', (used, held, step, amount) => {
    expect(amountToCapture(used, held, step)).toBe(amount)
  })
})

describe('the status of a run', () => {
  it.each<[OrderStatus, null | 'finalize' | 'expiry', string]>([
    ['pending', null, 'pending'],
    ['needs_reconcile', null, 'pending'],
    ['requires_action', 'finalize', 'finalizing'],
    ['needs_reconcile', 'expiry', 'finalizing'],
    ['authorized', null, 'active'],
    ['authorized', 'finalize', 'finalizing'],
    ['paid', 'finalize', 'finalized'],
    ['paid', 'expiry', 'expired'],
    ['canceled', 'finalize', 'finalized'],
    ['canceled', 'expiry', 'expired'],
    ['canceled', null, 'canceled'],
    ['payment_failed', null, 'failed'],
    ['payment_failed', 'finalize', 'failed'],
  ])('of an order that is %s, closed by %s, is %s', (status, closedBy, shown) => {
    expect(runStatus({ status } as Order, closedBy)).toBe(shown)
  })
})
