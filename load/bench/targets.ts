/** What is asked of the service, as ratios to what runs beside it. */

export interface Check {
  what: string
  value: number | null
  /** `at least` or `at most` this. */
  bound: 'at least' | 'at most'
  target: number
}

export function holds({ value, bound, target }: Check): boolean {
  if (value === null) return false
  return bound === 'at least' ? value >= target : value <= target
}

export function atLeast(what: string, target: number, value: number | null): Check {
  return { what, value, bound: 'at least', target }
}

export function atMost(what: string, target: number, value: number | null): Check {
  return { what, value, bound: 'at most', target }
}

/** As it is shown. */
export function told(value: number | null): string {
  return value === null ? 'not known' : value.toFixed(2)
}

/** Null where one side is missing. */
export function ratio(of: number | null | undefined, to: number | null | undefined): number | null {
  return of == null || to == null || to === 0 ? null : of / to
}
