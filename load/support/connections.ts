/**
 * Keeps autocannon's connections honest while servers die under them. By itself it reconnects in a tight loop to the same
 * port, reads a new connection with the parser's state of the old one, and may leave the old one open beside the new.
 */
import type { Client } from 'autocannon'

const reconnectAfterMs = 20

/** Call within `setupClient`. After a broken connection the client goes to the next of `ports`, as a load balancer sends it. */
export function reconnectCleanly(client: Client, ports: readonly number[]): void {
  const connect = client._connect.bind(client)
  client._connect = () => {
    if (client.conn === undefined) return connect()
    client._destroyConnection()
    client.parser.reinitialize(client.parser.type)
    setTimeout(() => {
      if (client.destroyed) return
      const next = (ports.indexOf(Number(client.opts.port)) + 1) % ports.length
      client.opts.port = ports[next] ?? client.opts.port
      connect()
    }, reconnectAfterMs)
  }
}
