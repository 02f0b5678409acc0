import { randomFillSync } from 'node:crypto'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const pool = Buffer.alloc(8192)
let used = pool.length

/** A Stripe-looking id: the prefix and `length` letters and digits. Ids need only be unique, so the slight bias of `% 62` is harmless. */
export function newId(prefix: string, length = 24): string {
  if (used + length > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  let id = prefix
  for (let i = 0; i < length; i++) id += alphabet[(pool[used++] ?? 0) % 62]
  return id
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
