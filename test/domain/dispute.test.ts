import { describe, expect, it } from 'vitest'
import { type DisputeState, disputeAfter } from '../../src/domain/dispute.ts'
import { disputeLives } from '../support/dispute-lives.ts'

const ends: Record<keyof typeof disputeLives, DisputeState> = {
  won: { status: 'won', withdrawn: true, reinstated: true, counts: false },
  lost: { status: 'lost', withdrawn: true, reinstated: false, counts: true },
  'warning closed': { status: 'warning_closed', withdrawn: false, reinstated: false, counts: false },
}

function movedBy(type: string): 'withdrawn' | 'reinstated' | null {
  if (type.endsWith('funds_withdrawn')) return 'withdrawn'
  return type.endsWith('funds_reinstated') ? 'reinstated' : null
}

function after(life: readonly (readonly [string, string])[]): DisputeState | null {
  return life.reduce<DisputeState | null>(
    (before, [type, status]) => disputeAfter(before, { status, moved: movedBy(type) }),
    null,
  )
}

describe.each(['won', 'lost', 'warning closed'] as const)('the news of a dispute that ends as %s', (end) => {
  it('leads there in every order, however often each piece comes', () => {
    for (const order of permutations(disputeLives[end])) {
      expect(after(order)).toEqual(ends[end])
      expect(after([...order, ...order])).toEqual(ends[end])
      expect(after([...order, ...[...order].reverse()])).toEqual(ends[end])
    }
  })
})

it('a dispute draws on the budget from its opening, an inquiry on nothing', () => {
  expect(after([['charge.dispute.created', 'needs_response']])?.counts).toBe(true)
  expect(after([['charge.dispute.created', 'warning_needs_response']])?.counts).toBe(false)
  expect(after([['charge.dispute.created', 'prevented']])?.counts).toBe(false)
})

it('a status that the provider has added since counts as an open dispute', () => {
  expect(after([['charge.dispute.created', 'something_new']])).toMatchObject({ counts: true, withdrawn: false })
})

function permutations<Item>(items: readonly Item[]): Item[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((item, index) =>
    permutations(items.filter((_, other) => other !== index)).map((rest) => [item, ...rest]),
  )
}
