import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy with a network's bad habits. */
export type TcpProxy = {
  port: number
  /** `url` with the proxy in place of the host and port it names. */
  through(url: string): string
  /** Connections open now. */
  connections(): number
  /** Nothing passes in either direction and nobody is told, on present and new connections: the half-open state in
   * which a lost route or a frozen host leaves a connection. */
  silence(): void
  /** Ends `silence`; what was held back is delivered. */
  resume(): void
  /** Resets all connections; returns how many. */
  cutAll(): number
  /** New connections are refused; present ones stay. */
  refuse(): void
  /** Ends `refuse`. */
  accept(): Promise<void>
  /** Lets the next request that contains `request` through, keeps the answer from the client, and when the answer
   * contains `answer` resets the connection: the server has done it, the client cannot know. Resolves then. */
  loseAnswer(request: string, answer?: string): Promise<void>
  /** New connections go to the host and port of another URL; present ones stay. */
  target(url: string): void
  close(): Promise<void>
}

type Loss = { request: string; answer: string; done: () => void }
type Pair = { client: Socket; server: Socket; losing?: { loss: Loss; received: string } }

/** Starts a proxy on 127.0.0.1 for the host and port of `target`, a URL. */
export async function startTcpProxy(target: string): Promise<TcpProxy> {
  let to = new URL(target)
  const pairs = new Set<Pair>()
  let silent = false
  let loss: Loss | undefined

  const pass = (from: Socket, to: Socket, chunk: Buffer) => {
    if (to.write(chunk)) return
    from.pause()
    to.once('drain', () => {
      if (!silent) from.resume()
    })
  }
  const cut = (pair: Pair) => {
    pairs.delete(pair)
    pair.client.resetAndDestroy()
    pair.server.resetAndDestroy()
  }

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const server = connect({ host: to.hostname, port: Number(to.port), allowHalfOpen: true, noDelay: true })
    const pair: Pair = { client, server }
    pairs.add(pair)
    client.on('data', (chunk) => {
      if (loss && chunk.includes(loss.request)) {
        pair.losing = { loss, received: '' }
        loss = undefined
      }
      pass(client, server, chunk)
    })
    server.on('data', (chunk) => {
      if (!pair.losing) return pass(server, client, chunk)
      pair.losing.received += chunk.toString('latin1')
      if (!pair.losing.received.includes(pair.losing.loss.answer)) return
      cut(pair)
      pair.losing.loss.done()
    })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on('end', () => other.end())
      socket.on('error', () => cut(pair))
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) pairs.delete(pair)
      })
      if (silent) socket.pause()
    }
  })
  const listen = (port: number) =>
    new Promise<void>((done, fail) => {
      listener.once('error', fail)
      listener.listen(port, '127.0.0.1', () => {
        listener.off('error', fail)
        done()
      })
    })
  await listen(0)
  const { port } = listener.address() as AddressInfo
  const forEachSocket = (change: (socket: Socket) => void) => {
    for (const { client, server } of pairs) for (const socket of [client, server]) change(socket)
  }

  return {
    port,
    through(url) {
      const changed = new URL(url)
      changed.host = `127.0.0.1:${port}`
      return changed.href
    },
    connections: () => pairs.size,
    silence() {
      silent = true
      forEachSocket((socket) => socket.pause())
    },
    resume() {
      silent = false
      forEachSocket((socket) => socket.resume())
    },
    cutAll() {
      const cutNow = [...pairs]
      for (const pair of cutNow) cut(pair)
      return cutNow.length
    },
    refuse() {
      listener.close() // the port at once, the present connections not
    },
    async accept() {
      if (!listener.listening) await listen(port)
    },
    loseAnswer: (request, answer = '') =>
      new Promise<void>((done) => {
        loss = { request, answer, done }
      }),
    target(url) {
      to = new URL(url)
    },
    async close() {
      listener.close()
      for (const pair of [...pairs]) cut(pair)
    },
  }
}
