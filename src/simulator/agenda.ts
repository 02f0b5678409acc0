import type { Subject } from './records.ts'

const timeoutMax = 2 ** 31 - 1

/** What is due later: each record names its own next step and when, so that after a restart the same is due. */
export class Agenda {
  readonly #run: (id: string) => void
  readonly #timers = new Map<string, { at: number; timer: NodeJS.Timeout }>()

  /** `run` does what is due for the record of that id, and nothing where it no longer is. */
  constructor(run: (id: string) => void) {
    this.#run = run
  }

  note(record: Subject): void {
    const at = dueAt(record)
    const known = this.#timers.get(record.id)
    if (known?.at === at) return
    if (known) {
      clearTimeout(known.timer)
      this.#timers.delete(record.id)
    }
    if (at === undefined || at - Date.now() > timeoutMax) return
    const timer = setTimeout(
      () => {
        this.#timers.delete(record.id)
        this.#run(record.id)
      },
      Math.max(at - Date.now(), 0),
    )
    this.#timers.set(record.id, { at, timer: timer.unref() })
  }

  clear(): void {
    for (const { timer } of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }
}

/** Unix milliseconds; undefined where nothing awaits the record. */
function dueAt(record: Subject): number | undefined {
  if (record.object === 'refund') return record.settles?.at
  if (record.object !== 'charge') return undefined
  if (record.dispute_due) return record.dispute_due.at
  if (
    record.status === 'succeeded' &&
    !record.captured &&
    record.amount_refunded === 0 &&
    record.capture_before !== null
  ) {
    return record.capture_before * 1000
  }
  return undefined
}
