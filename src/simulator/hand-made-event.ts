import type { Change } from './books.ts'
import { render } from './expand.ts'
import type { EventRecord, Subject } from './records.ts'
import { platformAccount } from './render-event.ts'
import type { World } from './world.ts'

type HandMade = {
  type: string
  data: { object: Record<string, unknown>; previous_attributes?: Record<string, unknown> }
  account?: string
  livemode?: boolean
}

/** An event of any content, correctly signed: what an attacker would need the signing secret for, or a stale or odd
 * event of Stripe's. Where `data.object.id` is in the books, that object is taken and the given fields put over it. */
export function handMadeEvent(world: World, change: Change, made: HandMade): EventRecord {
  const known = findSubject(world, made.data.object.id)
  const body = { ...(known ? render(known) : {}), ...made.data.object }
  const scope = {
    account: made.account ?? known?.account ?? platformAccount,
    livemode: made.livemode ?? known?.livemode ?? false,
  }
  return change.emit(made.type, { object: 'hand_made', body }, scope, made.data.previous_attributes ?? null)
}

function findSubject({ books }: World, id: unknown): Subject | undefined {
  if (typeof id !== 'string') return undefined
  return books.intents.peek(id) ?? books.charges.peek(id) ?? books.refunds.peek(id) ?? books.disputes.peek(id)
}
