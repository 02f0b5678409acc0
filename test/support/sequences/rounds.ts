/**
 * Many pieces of sequential work side by side, each asking for steps that cost least when taken together: whenever all
 * that are under way wait for a step, those steps are taken in one round.
 */
export class Rounds<Step, Result> {
  readonly #take: (steps: Step[]) => Promise<Result[]>
  #waiting: { step: Step; resolve: (result: Result) => void; reject: (error: unknown) => void }[] = []
  /** Pieces of work that have not ended. */
  #underWay = 0
  #isTaking = false

  /** `take` answers in the steps' order; where it throws, all of them fail. */
  constructor(take: (steps: Step[]) => Promise<Result[]>) {
    this.#take = take
  }

  step(step: Step): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ step, resolve, reject })
      this.#takeIfAllWait()
    })
  }

  /** Side by side with whatever else is under way; to be called from within a piece of work, or first of all. */
  async sideBySide(work: readonly (() => Promise<void>)[]): Promise<void> {
    const caller = Math.min(this.#underWay, 1)
    this.#underWay += work.length - caller
    const ended = await Promise.allSettled(
      work.map(async (piece) => {
        try {
          await piece()
        } finally {
          this.#underWay -= 1
          this.#takeIfAllWait()
        }
      }),
    )
    this.#underWay += caller
    for (const end of ended) if (end.status === 'rejected') throw end.reason
  }

  #takeIfAllWait(): void {
    if (this.#isTaking || this.#waiting.length === 0 || this.#waiting.length < this.#underWay) return
    this.#isTaking = true
    const taken = this.#waiting.splice(0)
    this.#take(taken.map(({ step }) => step))
      .then(
        (results) => {
          for (const [place, { resolve }] of taken.entries()) resolve(results[place] as Result)
        },
        (error: unknown) => {
          for (const { reject } of taken) reject(error)
        },
      )
      .finally(() => {
        this.#isTaking = false
        // Those that go on ask for their next step first.
        setImmediate(() => this.#takeIfAllWait())
      })
  }
}
