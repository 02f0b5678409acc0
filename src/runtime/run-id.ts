import { randomUUID } from 'node:crypto'

/** Names one run of a worker, where a request would have its id. */
export function newRunId(): string {
  return `work_${randomUUID()}`
}
