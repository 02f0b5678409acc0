/**
 * Named points between the steps of a flow, where a test can stop, delay or kill the process. They do nothing unless
 * a test arms a reaction. Production code only names the state just reached.
 */
type Reaction = (point: string) => void | Promise<void>

let reaction: Reaction | undefined

/** Resolves at once unless a test has armed a reaction. */
export function checkpoint(point: string): void | Promise<void> {
  return reaction?.(point)
}

/** For tests: react at every checkpoint; undefined disarms. */
export function armCheckpoints(react: Reaction | undefined): void {
  reaction = react
}
