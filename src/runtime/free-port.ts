import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

export const HOST = '127.0.0.1'

// Below the range from which systems take the local ports of outgoing connections: while the server restarts, such a
// connection could otherwise take its port.
const LOWEST = 20_000
const HIGHEST = 32_000

/** The preferred port where it is free, else any free one. Another process may still take it before it is used. */
export async function freePort(preferred: number | undefined): Promise<number> {
  if (preferred !== undefined && (await isFree(preferred))) return preferred
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if (await isFree(port)) return port
  }
  throw new Error(`found no free port on ${HOST} between ${LOWEST} and ${HIGHEST}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, HOST, () => probe.close(() => resolve(true)))
  })
}
