import { randomFillSync } from 'node:crypto'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const pool = Buffer.alloc(8192)
let used = pool.length

/** A Stripe-looking id: the prefix and `length` letters and digits. Ids need only be unique, so the slight bias of `% 62` is harmless. */
export function newId(prefix: string, length = 24): string {
  if (used + length > pool.length) refill()
  used += length
  return prefix + pool.toString('latin1', used - length, used)
}

function refill(): void {
  randomFillSync(pool)
  for (let at = 0; at < pool.length; at++) pool[at] = alphabet.charCodeAt((pool[at] ?? 0) % 62)
  used = 0
}

export type Random = () => number

/** A seeded generator of numbers in [0, 1) (mulberry32), so that a run with random faults can be repeated. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
