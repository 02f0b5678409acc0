import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Stripe from 'stripe'
import { onTestFinished } from 'vitest'

export type Received = { headers: IncomingHttpHeaders; body: string; event: Stripe.Event }

/** A receiver of notifications that keeps what it gets and answers with what `answer` says, 200 by default. */
export async function inbox(answer: (event: Stripe.Event, earlier: number) => number = () => 200, port = 0) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const event = JSON.parse(body) as Stripe.Event
      const earlier = received.filter((one) => one.event.id === event.id).length
      received.push({ headers: request.headers, body, event })
      response.writeHead(answer(event, earlier)).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  onTestFinished(close)
  const at = (server.address() as AddressInfo).port
  return { url: `http://127.0.0.1:${at}/v1/webhooks/stripe`, port: at, received, close }
}
