/** What a command writes: its result on standard output, how far it is on standard error. */
import type { Output } from './command.ts'

export interface Streams {
  out: { write(text: string): unknown }
  err: { write(text: string): unknown; isTTY?: boolean; columns?: number }
}

const barWidth = 24

/** With `json` the result is JSON and no bar is drawn; nor where nobody looks: standard error is no terminal. */
export function outputTo({ out, err }: Streams, json: boolean): Output {
  let drawn = false
  return {
    result(value, lines) {
      // The bar gives its line back.
      if (drawn) err.write('\r\u001b[K')
      drawn = false
      out.write(json ? `${JSON.stringify(value, null, 2)}\n` : lines.map((line) => `${line}\n`).join(''))
    },
    progress(fraction, text) {
      if (json || err.isTTY !== true) return
      drawn = true
      const done = Math.min(1, Math.max(0, fraction))
      const full = Math.round(done * barWidth)
      const line = `[${'#'.repeat(full)}${'.'.repeat(barWidth - full)}] ${Math.floor(done * 100)}% ${text}`
      err.write(`\r\u001b[K${line.slice(0, (err.columns ?? 80) - 1)}`)
    },
    endProgress() {
      if (drawn) err.write('\n')
      drawn = false
    },
  }
}
