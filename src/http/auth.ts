/** Who calls: `Authorization: Bearer <api key>` decides tenant and role. */
import { hash } from 'node:crypto'
import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import type { Deps } from '../deps.ts'
import { Problem } from '../domain/problem.ts'
import { findKeyOwner, type KeyOwner } from '../store/tenants.ts'

export type Role = KeyOwner['role']

/** A revoked key stops working after this at the latest, ms; the promise is 10 s. */
const rememberedForMs = 5000
/** Guessed keys must not fill the memory. */
const rememberedMax = 10_000

interface Remembered {
  /** A promise only while it is looked up. */
  owner: KeyOwner | null | Promise<KeyOwner | null>
  untilMs: number
}

/** Finds the owner of keys, remembering each for a moment so that a request costs no look-up of its own. */
export class KeyRing {
  readonly #deps: Pick<Deps, 'db'>
  readonly #remembered = new Map<string, Remembered>()
  /** Of the key that came last on a connection: most send the same one with every request. */
  readonly #ids = new WeakMap<object, { key: string; id: string }>()

  constructor(deps: Pick<Deps, 'db'>) {
    this.#deps = deps
  }

  /** Null where there is no such key. Answers at once where it is remembered. */
  owner(key: string, connection: object = this): KeyOwner | null | Promise<KeyOwner | null> {
    const id = this.#idOf(key, connection)
    const nowMs = performance.now()
    const remembered = this.#remembered.get(id)
    if (remembered !== undefined && remembered.untilMs > nowMs) return remembered.owner
    if (this.#remembered.size >= rememberedMax) this.#remembered.clear()
    const owner = findKeyOwner(this.#deps.db, Buffer.from(id, 'hex'))
    const found: Remembered = { owner, untilMs: nowMs + rememberedForMs }
    this.#remembered.set(id, found)
    owner.then(
      (known) => {
        found.owner = known
      },
      () => this.#remembered.delete(id),
    )
    return owner
  }

  #idOf(key: string, connection: object): string {
    const last = this.#ids.get(connection)
    if (last?.key === key) return last.id
    const id = hash('sha256', key, 'hex')
    this.#ids.set(connection, { key, id })
    return id
  }
}

/** Admits callers with one of the roles, before the body is read. */
export function admit(ring: KeyRing, ...roles: Role[]): preParsingHookHandler & { roles: readonly Role[] } {
  const hook: preParsingHookHandler = (request, _reply, _payload, done) => {
    const [, key] = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(request.headers.authorization ?? '') ?? []
    const owner = key === undefined ? null : ring.owner(key, request.raw.socket)
    // Every request comes through here, and hardly one has to wait.
    if (!(owner instanceof Promise)) return done(admitted(request, owner, roles))
    owner.then((found) => done(admitted(request, found, roles)), done)
  }
  // The contract tells them.
  return Object.assign(hook, { roles })
}

/** Why the owner is not admitted; otherwise the request is theirs. */
function admitted(request: FastifyRequest, owner: KeyOwner | null, roles: readonly Role[]): Problem | undefined {
  if (owner === null) {
    return new Problem('unauthorized', { detail: 'Send "Authorization: Bearer <api key>" with a valid key.' })
  }
  request.caller = owner
  if (roles.includes(owner.role)) return undefined
  return new Problem('forbidden', { detail: `This needs a key of the role ${roles.join(' or ')}.` })
}

/** The admitted caller. */
export function callerOf(request: FastifyRequest): KeyOwner {
  if (request.caller === null) throw new Error('the route admits nobody')
  return request.caller
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: KeyOwner | null
    /** Of the refusal that was answered, for the metrics. */
    problemCode: string | null
  }
  interface FastifyContextConfig {
    /** Errors of this route say whether a new idempotency key is safe: by the key in the header, or never where they do
     * not know it. */
    tellsNewKeySafe?: 'by_header' | 'never'
  }
}
