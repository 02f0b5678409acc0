/** Requests that a well-behaved client cannot send: repeated headers, paths as they stand, bytes that are no HTTP. */
import { request } from 'node:http'
import { connect } from 'node:net'
import type { Reply } from './client.ts'
import { expectInContract } from './contract.ts'

export interface RawRequest {
  method: string
  /** As sent, not normalised. */
  path: string
  /** Name, value, name, value, …; a name may come more than once. */
  headers?: string[]
  body?: string | Uint8Array
}

export function sendRaw(url: string, { method, path, headers = [], body }: RawRequest): Promise<Reply> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
    const sent = request(
      // A connection of its own: what one request breaks, the next must not meet.
      { hostname, port, method, path, headers: ['Host', `${hostname}:${port}`, ...headers, ...length], agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const received = new Headers()
          for (const [name, values] of Object.entries(response.headersDistinct)) {
            for (const value of values ?? []) received.append(name, value)
          }
          const status = response.statusCode ?? 0
          try {
            expectInContract({ method, path, status, headers: received, text })
          } catch (error) {
            reject(error as Error)
            return
          }
          resolve({
            status,
            headers: received,
            text,
            json: parse(text),
            replayed: received.get('idempotent-replayed') === 'true',
          })
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Writes the bytes to the server and resolves with everything that it answers until it closes the connection. */
export function sendBytes(url: string, bytes: string | Uint8Array): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes))
    socket.setEncoding('utf8').on('data', (text) => {
      received += text
    })
    socket.on('close', () => resolve(received))
    socket.on('error', (error) => (received === '' ? reject(error) : resolve(received)))
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
