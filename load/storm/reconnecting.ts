/**
 * Keeps autocannon's connections honest while servers die under them. By itself it reconnects in a tight loop to the same
 * server, reads a new connection with the parser's state of the old one, and may leave the old one open beside the new.
 */
import type { Client } from 'autocannon'

const reconnectAfterMs = 20

/** Call within `setupClient`. After a broken connection the client goes to the next of `urls`, as a load balancer sends it. */
export function reconnectCleanly(client: Client, urls: readonly string[]): void {
  const targets = urls.map((url) => {
    const { hostname, port, protocol } = new URL(url)
    return { hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) }
  })
  const { hostname, port } = client.opts
  let at = targets.findIndex((target) => target.hostname === hostname && target.port === Number(port))
  const connect = client._connect.bind(client)
  client._connect = () => {
    if (client.conn === undefined) return connect()
    client._destroyConnection()
    client.parser.reinitialize(client.parser.type)
    at = (at + 1) % targets.length
    setTimeout(() => {
      if (client.destroyed) return
      Object.assign(client.opts, targets[at])
      connect()
    }, reconnectAfterMs)
  }
}
