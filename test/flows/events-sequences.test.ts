/**
 * Every sequence of up to four events, of all kinds that move anything, in every order and with repeats: whatever they
 * claim, and however late or wrong they are, the order ends in the state, stock and ledger that the provider's books call
 * for. What can have happened at the provider, and how the order stands when the news of it comes, is in `truths.ts`; how
 * every sequence is covered without running each, in `search.ts`.
 *
 * SEQUENCE_SAMPLES=2000 runs more sequences by themselves, SEQUENCE_SEED=7 others, SEQUENCE_TRUTHS='paid|declined' those of some truths.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Random } from '../model/random.ts'
import { kinds, letters } from '../support/sequences/letters.ts'
import { Rounds } from '../support/sequences/rounds.ts'
import { Search } from '../support/sequences/search.ts'
import { SequenceStage, type Step, type Taken } from '../support/sequences/stage.ts'
import { truths } from '../support/sequences/truths.ts'

const length = 4
const samples = Number(process.env.SEQUENCE_SAMPLES ?? 60)
const seed = Number(process.env.SEQUENCE_SEED ?? 1)
const only = process.env.SEQUENCE_TRUTHS?.split('|')
const patience = { timeout: 600_000 }

let stage: SequenceStage
let engine: Rounds<Step, Taken>
let searches: Search[]
beforeAll(async () => {
  stage = await SequenceStage.set()
  engine = new Rounds((steps) => stage.take(steps))
  searches = truths
    .filter(({ name }) => only === undefined || only.includes(name))
    .map((truth) => new Search(engine, truth, letters))
})
afterAll(() => stage.stop())

it('there are 14 kinds of events', () => {
  expect(new Set(Object.values(kinds).flat()).size).toBe(14)
  expect([...new Set(letters.map(({ type }) => type))].sort()).toEqual(Object.values(kinds).flat().sort())
})

it('every sequence leads to a state that is found', patience, async () => {
  await engine.sideBySide(searches.map((search) => () => search.run(length)))
  expect(whatIsWrong()).toEqual([])
  for (const { truth, states, isComplete } of searches) {
    const followed = [...states.values()].every(({ next }) => next.size === letters.length)
    expect({ truth: truth.name, isComplete, followed }).toEqual({ truth: truth.name, isComplete: true, followed: true })
  }
})

it("in each of which the order ends as the provider's books call for", patience, async () => {
  await engine.sideBySide(searches.map((search) => () => search.settle()))
  expect(whatIsWrong()).toEqual([])
})

it('sequences that are run by themselves lead to the same states', patience, async () => {
  const random = new Random(seed)
  const drawn = Array.from({ length: samples }, () => {
    const search = random.pick(searches)
    const begin = random.pick([...search.roots.keys()])
    const sequence = Array.from({ length: random.integer(1, length) }, (_, place) =>
      place > 0 && random.chance(0.15) ? null : random.pick(letters),
    )
    return () => search.runOne(begin, sequence)
  })
  await engine.sideBySide(drawn)
  expect(whatIsWrong()).toEqual([])
})

/** Some of it: what is wrong once is often wrong many times. */
function whatIsWrong(): object[] {
  return searches.flatMap(({ wrong }) => wrong.slice(0, 3)).slice(0, 20)
}
