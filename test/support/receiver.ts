/** A merchant's HTTP server: keeps what it is sent and answers as a test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedPost {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface Receiver {
  url: string
  received: ReceivedPost[]
  /** By default 204. */
  answer(how: (post: ReceivedPost, response: ServerResponse) => void): void
  stop(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const received: ReceivedPost[] = []
  let how = (_post: ReceivedPost, response: ServerResponse): void => {
    response.writeHead(204).end()
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const post = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() }
      received.push(post)
      how(post, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    answer(next) {
      how = next
    },
    async stop() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
