interface IllFormed {
  /** JSON Pointer (RFC 6901) to the value, or to the object that holds the key, where a key is at fault. */
  path: string
  problem: IllFormedProblem
}

export type IllFormedProblem =
  /** U+0000 in a string or key: Postgres cannot store it in text or jsonb. */
  | 'nul'
  /** Half of a surrogate pair in a string or key: it has no UTF-8 form, so it cannot be stored, digested or sent on. */
  | 'lone_surrogate'
  /** Beyond 2^53 - 1: JSON.parse has already put a neighbour in its place (9007199254740993 arrives as …992). */
  | 'unsafe_number'
  /** Arrays and objects within one another more than `depthMax` deep. */
  | 'too_deep'
  /** An own key `__proto__`: whatever copies the object by assignment loses it, or takes it for the prototype. */
  | 'forbidden_key'

/** No body of ours goes beyond 4; the limit bounds the recursion here and in everything that walks the body later. */
export const depthMax = 32

/**
 * The first thing in parsed JSON that could not be kept, compared or sent on as it is, in document order; null where
 * all is well. A key `constructor` is let through: as an own property it is a name like any other.
 */
export function findIllFormed(value: unknown): IllFormed | null {
  return find(value, 1)
}

function find(value: unknown, depth: number): IllFormed | null {
  if (typeof value === 'string') return problemAt('', textProblem(value))
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER ? at('', 'unsafe_number') : null
  if (typeof value !== 'object' || value === null) return null
  if (depth > depthMax) return at('', 'too_deep')
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = find(value[i], depth + 1)
      if (found !== null) return at(`/${i}${found.path}`, found.problem)
    }
    return null
  }
  for (const [key, member] of Object.entries(value)) {
    const keyProblem = key === '__proto__' ? 'forbidden_key' : textProblem(key)
    if (keyProblem !== null) return at('', keyProblem)
    const found = find(member, depth + 1)
    if (found !== null) return at(`/${escapePointer(key)}${found.path}`, found.problem)
  }
  return null
}

function textProblem(text: string): IllFormedProblem | null {
  if (text.includes('\0')) return 'nul'
  return text.isWellFormed() ? null : 'lone_surrogate'
}

function problemAt(path: string, problem: IllFormedProblem | null): IllFormed | null {
  return problem === null ? null : at(path, problem)
}

function at(path: string, problem: IllFormedProblem): IllFormed {
  return { path, problem }
}

function escapePointer(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}
