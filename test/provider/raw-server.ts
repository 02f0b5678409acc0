import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A TCP server that hands each request, as the bytes it came in, to `answer`. */
export type RawServer = {
  url: string
  /** The requests so far. */
  requests: string[]
  close(): Promise<void>
}

export async function startRawServer(answer: (socket: Socket, request: string) => void): Promise<RawServer> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {}) // the client may leave while we still write
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (!isWhole(received)) return
      const request = received
      received = ''
      requests.push(request)
      answer(socket, request)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** A whole answer; a string is sent as it stands, anything else as JSON. */
export function httpAnswer(status: number, body: unknown, headers: Record<string, string> = {}): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const lines = Object.entries({ 'content-length': String(Buffer.byteLength(text)), ...headers })
  return `HTTP/1.1 ${status} Status\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text}`
}

function isWhole(request: string): boolean {
  const end = request.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /^content-length: *(\d+)/im.exec(request)?.[1] ?? '0'
  return request.length >= end + 4 + Number(length)
}
