/** Clients that never come to an end. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildApp } from '../../src/app.ts'
import { keys } from '../support/client.ts'
import { type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
})
afterAll(() => scene.stop())

/** Resolves with what is answered until the connection ends; sends one more piece now and then. */
function trickle(port: number, head: string, piece: string): Promise<string> {
  return new Promise((resolve) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(head))
    const more = setInterval(() => socket.write(piece), 50)
    socket.setEncoding('utf8').on('data', (text) => {
      received += text
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearInterval(more)
      resolve(received)
    })
  })
}

describe('a request that never wholly arrives', () => {
  it('is given up, in its headers and in its body, however much of it comes', async () => {
    const app = buildApp(scene.service.deps)
    // As it is set, but in the time of a test.
    expect([app.server.headersTimeout, app.server.requestTimeout]).toEqual([30_000, 30_000])
    app.server.headersTimeout = 200
    app.server.requestTimeout = 200
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as { port: number }
    const start = `POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.storefront}\r\nIdempotency-Key: slow\r\n`
    const answers = await Promise.all([
      trickle(port, start, 'X-More: x\r\n'),
      trickle(port, `${start}Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n`, ' '),
      trickle(port, 'POST /v1/webhooks/stripe HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n', ' '),
    ])
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s)
    expect(await scene.db.selectFrom('attempts').select('key').where('key', '=', 'slow').execute()).toEqual([])
    await app.close()
  })
})
