/** The benchmark's connection reads answers however they are cut, and tells of those that never came. */
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { Connection } from '../../load/bench/connection.ts'

let server: Server | undefined
let connection: Connection | undefined
afterEach(() => {
  connection?.close()
  server?.close()
})

/** Connected to a server that does this with each request. */
async function connected(answer: (socket: Socket, request: string) => void): Promise<Connection> {
  const listening = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (request) => answer(socket, request.toString()))
  })
  server = listening
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  connection = new Connection(`http://127.0.0.1:${(listening.address() as { port: number }).port}`)
  return connection
}

it('an answer in pieces, and the next one after it', async () => {
  const pieces = ['HTTP/1.1 2', '01 Created\r\nContent-Le', 'ngth: 9\r\n\r', '\n{"a"', ':"b"}']
  const client = await connected(async (socket) => {
    for (const piece of pieces) {
      socket.write(piece)
      await delay(5)
    }
  })
  expect((await client.send('POST / HTTP/1.1\r\n\r\n')).status).toBe(201)
  expect((await client.send('POST / HTTP/1.1\r\n\r\n')).status).toBe(201)
})

it('a connection that ends within an answer, and is made again for the next', async () => {
  const client = await connected((socket, request) => {
    if (request.startsWith('GET /cut')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf')
    else socket.write('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}')
  })
  expect((await client.send('GET /cut HTTP/1.1\r\n\r\n')).status).toBe(0)
  expect((await client.send('GET / HTTP/1.1\r\n\r\n')).status).toBe(503)
})
