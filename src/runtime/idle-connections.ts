import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const passMs = 100

/**
 * Knows which connections have no request under way, those included that never had one: browsers and load balancers open
 * connections in advance, and `server.close()` waits for these until `headersTimeout` (a minute), as
 * `closeIdleConnections()` does not see them.
 */
export class IdleConnections {
  readonly #idle = new Set<Socket>()
  readonly #server: Server

  constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => {
      this.#idle.add(socket)
      socket.once('close', () => this.#idle.delete(socket))
    })
    server.on('request', ({ socket }, response) => {
      this.#idle.delete(socket)
      response.once('close', () => {
        if (!socket.destroyed) this.#idle.add(socket)
      })
    })
  }

  /** From now on until the server has closed, closes what has been idle for a moment: a request that is on its way to an
   * idle connection still gets in. */
  closeUntilClosed(): void {
    let before = new Set<Socket>()
    const timer = setInterval(() => {
      for (const socket of this.#idle) if (before.has(socket)) socket.destroy()
      before = new Set(this.#idle)
    }, passMs).unref()
    this.#server.once('close', () => clearInterval(timer))
  }
}
