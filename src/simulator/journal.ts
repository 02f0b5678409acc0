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
      entry = JSON.parse(line) as Entry
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
      batch += `${JSON.stringify(entry)}\n`
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
    this.#write(`${JSON.stringify(entry)}\n`)
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
