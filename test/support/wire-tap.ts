/** Listens on the wire between the service and Postgres: what it costs is counted where it is spent, not where it is meant. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pooled } from './pooling.ts'

export interface WireTap {
  /** `url` with the tap in place of the server. */
  through(url: string): string
  /** SQL of every statement that has been sent since the last `clear`, in order. Each is a round trip of its own, and its
   * own transaction unless it stands between `begin` and `commit`. */
  statements(): string[]
  clear(): void
  close(): void
}

/** Starts a tap on 127.0.0.1 for the host and port of `target`, a URL. */
export async function startWireTap(target: string): Promise<WireTap> {
  const { hostname, port } = new URL(pooled(target))
  const seen: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true })
    const reader = frontendReader((sql) => seen.push(sql))
    client.on('data', (chunk) => {
      reader(chunk)
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => client.write(chunk))
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    through(url) {
      const changed = new URL(url)
      changed.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
      return changed.href
    },
    statements: () => [...seen],
    clear: () => void seen.splice(0),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * Reads what a client sends (https://www.postgresql.org/docs/18/protocol-message-formats.html): a start-up message
 * without a type, then messages of a type byte and a length. A statement is a simple query, or a Parse or Bind that a
 * Sync ends.
 */
function frontendReader(onStatement: (sql: string) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0)
  let started = false
  let parsed: string | undefined
  const named = new Map<string, string>()
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = started ? 1 : 0
      if (rest.length < head + 4) return
      const length = rest.readInt32BE(head)
      if (rest.length < head + length) return
      const type = started ? String.fromCharCode(rest[0] as number) : ''
      const body = rest.subarray(head + 4, head + length)
      rest = rest.subarray(head + length)
      started = true
      const texts = body.toString('latin1').split('\0')
      if (type === 'Q') onStatement(texts[0] ?? '')
      if (type === 'P') {
        parsed = texts[1] ?? ''
        named.set(texts[0] ?? '', parsed)
      }
      if (type === 'B') parsed = named.get(texts[1] ?? '')
      if (type === 'S' && parsed !== undefined) {
        onStatement(parsed)
        parsed = undefined
      }
    }
  }
}
