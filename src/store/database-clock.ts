/** The database's clock, which all processes share, as a statement has told it: it goes on by this process's own, and lags by
 * the time that the answer was on its way. */
export class DatabaseClock {
  /** What it showed when `performance.now()` was 0. */
  readonly #originMs: number

  constructor(told: Date) {
    this.#originMs = told.getTime() - performance.now()
  }

  hasReached(moment: Date): boolean {
    return this.now() >= moment
  }

  now(): Date {
    return new Date(this.#originMs + performance.now())
  }

  /** When it will show this, in terms of `performance.now()`. */
  hereMs(moment: Date): number {
    return moment.getTime() - this.#originMs
  }
}
