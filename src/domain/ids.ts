import { randomUUID } from 'node:crypto'
import { fromUUID, typeidUnboxed } from 'typeid-js'

/** What an id names. The prefix is part of the public id. */
const prefixes = ['ord', 'cus', 'ref', 'run', 'tra', 'evt', 'dlv', 'aud', 'rep'] as const

type IdPrefix = (typeof prefixes)[number]
export type Id<Prefix extends IdPrefix = IdPrefix> = `${Prefix}_${string}`

/**
 * A new id: a TypeID (https://github.com/jetify-com/typeid), that is the prefix and a UUID in 26 characters of base 32.
 * The UUID is a version 7, whose leading time keeps rows that are made together next to each other in an index. A
 * customer's is a random version 4: it stands in every order of that person, and its time would tell when they first bought.
 */
export function newId<Prefix extends IdPrefix>(prefix: Prefix): Id<Prefix> {
  return (prefix === 'cus' ? fromUUID(randomUUID(), prefix) : typeidUnboxed(prefix)) as string as Id<Prefix>
}

/** The lower bound of the ids that are made over time from `at` on. Not for those of customers, which are random. */
export function firstIdFrom<Prefix extends Exclude<IdPrefix, 'cus'>>(prefix: Prefix, at: Date): Id<Prefix> {
  const ms = Math.max(0, at.getTime()).toString(16).padStart(12, '0')
  return fromUUID(`${ms.slice(0, 8)}-${ms.slice(8)}-0000-0000-000000000000`, prefix) as string as Id<Prefix>
}

// A UUID has 128 bits and 26 digits of base 32 have 130, so the first is at most 7. i, l, o and u are no digits.
const shapes = new Map<IdPrefix, RegExp>(
  prefixes.map((prefix) => [prefix, new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`)]),
)

/** Whether `text` has the form of such an id; says nothing about whether it names anything. */
export function isId<Prefix extends IdPrefix>(prefix: Prefix, text: string): text is Id<Prefix> {
  return shapes.get(prefix)?.test(text) === true
}
