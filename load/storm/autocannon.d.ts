/** What is used here of autocannon, which comes without types. */
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  interface Request {
    method?: string
    path?: string
    headers?: Record<string, string>
    body?: string
    /** Called before each send. */
    setupRequest?(request: Request): Request
    onResponse?(status: number, body: string, context: unknown, headers: Record<string, string>): void
  }

  interface Client extends EventEmitter {
    setRequests(requests: Request[]): void
    // Not part of the documented interface; see reconnecting.ts.
    conn?: unknown
    opts: { hostname: string; port: number | string }
    parser: { type: string; reinitialize(type: string): void }
    destroyed: boolean
    _connect(): void
    _destroyConnection(): void
  }

  interface Options extends Request {
    url: string | string[]
    connections: number
    /** s */
    duration: number
    /** s */
    timeout?: number
    /** Requests a second, over all connections. */
    overallRate?: number
    setupClient?(client: Client): void
  }

  export default function autocannon(options: Options): Promise<unknown>
}
