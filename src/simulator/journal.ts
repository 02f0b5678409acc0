import {
  closeSync,
  createReadStream,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import type { EventRecord, StoredAnswer, Subject } from './records.ts'

/** What one request, or one step of the simulator by itself, changed: a line of the file, so all of it or nothing. */
export type Entry = {
  records?: Subject[]
  events?: EventRecord[]
  answer?: StoredAnswer
  /** Events that no longer wait for delivery. */
  delivered?: string[]
  /** How many requests have come with a key so far: its name, and the count. */
  counted?: [name: string, requests: number]
}

/** An entry as it is written: the body of the answer stands behind a tab, since escaping it once more would cost as much
 * as all the rest, and an event names its subject where that is the record as it stands in the same entry. */
function toLine(entry: Entry): string {
  const { answer, events, records } = entry
  const named = events?.map((event) =>
    records?.includes(event.subject as Subject) ? { ...event, subject: (event.subject as Subject).id } : event,
  )
  const { body, ...rest } = answer ?? {}
  const head = JSON.stringify({ ...entry, ...(named ? { events: named } : {}), ...(answer ? { answer: rest } : {}) })
  return answer ? `${head}\t${body}\n` : `${head}\n`
}

function fromLine(line: string): Entry {
  const tab = line.indexOf('\t')
  const entry = JSON.parse(tab < 0 ? line : line.slice(0, tab)) as Entry
  if (entry.answer) entry.answer.body = line.slice(tab + 1)
  for (const event of entry.events ?? []) {
    if (typeof event.subject !== 'string') continue
    event.subject = entry.records?.find((record) => record.id === (event.subject as unknown)) as Subject
  }
  return entry
}

/** Reads a journal. A torn last line is what a kill leaves behind: it was never answered, so it is dropped.
 * Throws where any other line is unreadable. */
export async function* readJournal(path: string): AsyncGenerator<Entry> {
  if (!existsSync(path)) return
  let number = 0
  let torn: number | undefined
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    number++
    if (torn !== undefined) throw new Error(`${path}: line ${torn} is not readable; move the file away to start empty`)
    let entry: Entry | undefined
    try {
      entry = fromLine(line)
    } catch {
      torn = number
    }
    if (entry !== undefined) yield entry
  }
}

/** The append-only file of entries. Lines are handed to the operating system before the caller answers, so they
 * outlive the process, though (without fsync) not the machine. */
export class Journal {
  readonly #path: string
  #fd: number | undefined
  #early: string[] = []

  constructor(path: string) {
    this.#path = path
  }

  /** Replaces the file by the given entries, which stand for all that it held, and opens it. */
  open(compacted: Iterable<Entry>): void {
    mkdirSync(dirname(this.#path), { recursive: true })
    const fresh = `${this.#path}.new`
    const fd = openSync(fresh, 'w')
    let batch = ''
    for (const entry of compacted) {
      batch += toLine(entry)
      if (batch.length < 1_000_000) continue
      writeSync(fd, batch)
      batch = ''
    }
    writeSync(fd, batch)
    closeSync(fd)
    renameSync(fresh, this.#path)
    this.#fd = openSync(this.#path, 'a')
    for (const line of this.#early.splice(0)) this.#write(line)
  }

  append(entry: Entry): void {
    this.#write(toLine(entry))
  }

  empty(): void {
    this.#early = []
    if (this.#fd !== undefined) ftruncateSync(this.#fd, 0)
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #write(line: string): void {
    if (this.#fd === undefined) this.#early.push(line)
    else writeSync(this.#fd, line)
  }
}
