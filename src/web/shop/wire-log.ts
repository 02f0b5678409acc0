/** What went over the wire for checkouts, kept over reloads of the tab. No bodies: nothing of the customer. */
import type { WireEvent } from '../client/index.ts'

export interface Line {
  id: number
  method: string
  path: string
  key: string
  /** Absent while it is under way; `lost` where no answer came. */
  answer?: 'lost' | { status: number; word: string; replayed: boolean }
}

const name = 'shop.wire'
const linesMax = 30

export class WireLog {
  /** Oldest first. */
  lines: Line[] = read()
  onChange: () => void = () => {}
  // Ids of this page's life follow those of the lives before.
  readonly #before = this.lines.at(-1)?.id ?? 0

  add({ id, method, path, key, reply }: WireEvent): void {
    if (key === undefined) return
    const line: Line = {
      id: this.#before + id,
      method,
      path: path.replace(encodeURIComponent(key), '{key}'),
      key,
      ...(reply === undefined
        ? {}
        : {
            answer:
              reply.kind === 'lost'
                ? 'lost'
                : { status: reply.status, word: wordOf(reply.json), replayed: reply.replayed },
          }),
    }
    this.lines = [...this.lines.filter((other) => other.id !== line.id), line]
      .sort((a, b) => a.id - b.id)
      .slice(-linesMax)
    this.#changed()
  }

  clear(): void {
    this.lines = []
    this.#changed()
  }

  #changed(): void {
    try {
      sessionStorage.setItem(name, JSON.stringify(this.lines))
    } catch {
      // Closed or full: then it lasts as long as the page.
    }
    this.onChange()
  }
}

/** The one word that says what an answer means. */
function wordOf(json: unknown): string {
  const { code, status, order, state } = (json ?? {}) as Record<string, unknown> & { order?: { status?: string } }
  return String(code ?? order?.status ?? (typeof status === 'string' ? status : (state ?? '')))
}

function isLine(it: Line | null): boolean {
  return [it?.method, it?.path, it?.key].every((each) => typeof each === 'string') && Number.isInteger(it?.id)
}

/** A request that the page did not live to see answered stays without an answer. */
function read(): Line[] {
  try {
    const lines = JSON.parse(sessionStorage.getItem(name) ?? '[]') as Line[]
    return lines.filter(isLine).map((line) => ({ ...line, answer: line.answer ?? 'lost' }))
  } catch {
    return []
  }
}
