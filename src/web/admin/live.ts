/** The figures of the start page, read every few seconds while the page can be seen. */
import type { Api } from './api.ts'
import type { Figures } from './types.ts'

export const everyMs = 5000
/** Ten minutes. */
const samplesMax = 120
export const minutesShown = 30

interface Sample {
  at: number
  needsReconcile: number
  dueSeconds: number
  replays: number
  conflicts: number
}

type Watcher = (live: LiveFigures) => void

export class LiveFigures {
  latest: Figures | null = null
  /** When the service was last heard, ms; the figures are of then. */
  heardAt = 0
  isSilent = false
  readonly samples: Sample[] = []
  readonly since = Date.now()
  /** Orders begun by minute. */
  readonly started = new Map<string, number>()
  readonly #processes = new Map<string, Figures['process']>()
  readonly #watchers = new Set<Watcher>()
  readonly #api: Api
  #timer: ReturnType<typeof setTimeout> | undefined
  #isReading = false
  readonly #ending = new AbortController()

  constructor(api: Api) {
    this.#api = api
    document.addEventListener('visibilitychange', this.#onVisibility, { signal: this.#ending.signal })
  }

  /** Ends when the figures are read no more. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }

  /** Reads now, and goes on. Rejects where the first reading fails. */
  async begin(): Promise<void> {
    await this.#read()
    this.#schedule()
  }

  end(): void {
    this.#ending.abort()
    clearTimeout(this.#timer)
  }

  /** Calls back now and at every reading, until `signal` ends. */
  watch(watcher: Watcher, signal?: AbortSignal): void {
    this.#watchers.add(watcher)
    signal?.addEventListener('abort', () => this.#watchers.delete(watcher))
    watcher(this)
  }

  /** Reads out of turn: something has been done. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#tick()
  }

  /** Answers given again and refused keys, as far as the processes that answered this page have counted. */
  get counted(): { processes: number; replays: number; conflicts: number } {
    const all = [...this.#processes.values()]
    return {
      processes: all.length,
      replays: all.reduce((sum, { replays }) => sum + replays, 0),
      conflicts: all.reduce((sum, { conflicts }) => sum + conflicts, 0),
    }
  }

  readonly #onVisibility = () => {
    clearTimeout(this.#timer)
    if (!document.hidden) void this.#tick()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (!this.signal.aborted && !document.hidden) this.#timer = setTimeout(() => void this.#tick(), everyMs)
  }

  async #tick(): Promise<void> {
    if (this.#isReading || this.signal.aborted) return
    try {
      await this.#read()
    } catch {
      this.isSilent = true
      this.#tell()
    } finally {
      this.#schedule()
    }
  }

  async #read(): Promise<void> {
    this.#isReading = true
    try {
      // What is past does not change: only the first reading needs all of it, and one after a pause.
      const gap = (Date.now() - this.heardAt) / 60_000
      const figures = await this.#api.get<Figures>(
        '/figures',
        { minutes: gap < 1 ? '2' : String(minutesShown) },
        this.signal,
      )
      this.#take(figures)
    } finally {
      this.#isReading = false
    }
  }

  #take(figures: Figures): void {
    this.latest = figures
    this.heardAt = Date.now()
    this.isSilent = false
    for (const { at, orders } of figures.started) this.started.set(at, orders)
    for (const at of [...this.started.keys()].sort().slice(0, -minutesShown)) this.started.delete(at)
    const { process } = figures
    // A process that is new to this page has counted before; only what it counts from now on has a time.
    const before = this.#processes.get(process.id) ?? (Date.parse(process.since) > this.since ? none : process)
    this.#processes.set(process.id, process)
    const due = figures.waiting.oldest_due_at
    this.samples.push({
      at: Date.parse(figures.at),
      needsReconcile: figures.waiting.needs_reconcile,
      dueSeconds: due === null ? 0 : Math.max(0, (Date.parse(figures.at) - Date.parse(due)) / 1000),
      replays: process.replays - before.replays,
      conflicts: process.conflicts - before.conflicts,
    })
    this.samples.splice(0, this.samples.length - samplesMax)
    this.#tell()
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher(this)
  }
}

const none = { replays: 0, conflicts: 0 }
