import { describe, expect, it } from 'vitest'
import { mayBecome, type RefundStatus, refundable, withoutRelease } from '../../src/domain/refund.ts'

describe('what a refund may become', () => {
  const bound = { provider_refund_id: 're_1' }
  const unbound = { provider_refund_id: null }

  it('never goes back: one that failed at the bank stays failed', () => {
    const may = (status: RefundStatus) =>
      (['pending', 'succeeded', 'failed', 'unsent'] as const).filter((to) => mayBecome({ status, ...bound }, to))
    expect(may('succeeded')).toEqual(['failed'])
    expect(may('failed')).toEqual([])
    expect(may('pending')).toEqual(['pending', 'succeeded', 'failed', 'unsent'])
  })

  it('turns up at the provider after all, where it had been given up without a trace there', () => {
    expect(mayBecome({ status: 'failed', ...unbound }, 'succeeded')).toBe(true)
    expect(mayBecome({ status: 'unsent', ...unbound }, 'pending')).toBe(true)
    expect(mayBecome({ status: 'failed', ...unbound }, 'failed')).toBe(false)
  })
})

it('refunds and disputes draw on one budget', () => {
  expect(refundable({ captured: 1000, refunded: 300, disputed_amount: 500 })).toBe(200)
})

describe('the list of a payment that was captured in part', () => {
  const at = (seconds: number) => new Date(seconds * 1000)
  const item = (id: string, amount: number, seconds: number, refund?: string, status = 'succeeded') => ({
    id,
    amount,
    status,
    createdAt: at(seconds),
    metadata: refund === undefined ? {} : { refund },
  })
  const ids = (items: { id: string }[] | null) => items?.map(({ id }) => id)

  it('does not count what was let go of the hold as given back', () => {
    const list = [item('later', 600, 9), item('ours', 600, 5, 'ref_1'), item('release', 600, 1)]
    expect(ids(withoutRelease(list, 600, 1200))).toEqual(['later', 'ours'])
  })

  it('is taken whole where the provider does not list that', () => {
    const list = [item('dashboard', 600, 9)]
    expect(ids(withoutRelease(list, 600, 600))).toEqual(['dashboard'])
  })

  it('is of no use where a refund came between its reading and that of the payment', () => {
    expect(withoutRelease([item('release', 600, 1)], 600, 200)).toBeNull()
  })

  it('counts nothing of refunds that failed', () => {
    const list = [item('failed', 600, 0, undefined, 'failed'), item('release', 600, 1)]
    expect(ids(withoutRelease(list, 600, 0))).toEqual(['failed'])
  })
})
