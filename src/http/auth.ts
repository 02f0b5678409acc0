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

/** Finds the owner of keys, remembering each for a moment so that a request costs no look-up of its own. */
export class KeyRing {
  readonly #deps: Pick<Deps, 'db'>
  readonly #remembered = new Map<string, { owner: Promise<KeyOwner | null>; untilMs: number }>()

  constructor(deps: Pick<Deps, 'db'>) {
    this.#deps = deps
  }

  owner(key: string): Promise<KeyOwner | null> {
    const id = hash('sha256', key, 'hex')
    const nowMs = performance.now()
    const remembered = this.#remembered.get(id)
    if (remembered !== undefined && remembered.untilMs > nowMs) return remembered.owner
    if (this.#remembered.size >= rememberedMax) this.#remembered.clear()
    const owner = findKeyOwner(this.#deps.db, Buffer.from(id, 'hex'))
    this.#remembered.set(id, { owner, untilMs: nowMs + rememberedForMs })
    owner.catch(() => this.#remembered.delete(id))
    return owner
  }
}

/** Admits callers with one of the roles, before the body is read. */
export function admit(ring: KeyRing, ...roles: Role[]): preParsingHookHandler & { roles: readonly Role[] } {
  const hook: preParsingHookHandler = async (request) => {
    const [, key] = /^Bearer ([\x21-\x7e]{1,256})$/i.exec(request.headers.authorization ?? '') ?? []
    const owner = key === undefined ? null : await ring.owner(key)
    if (owner === null)
      throw new Problem('unauthorized', { detail: 'Send "Authorization: Bearer <api key>" with a valid key.' })
    request.caller = owner
    if (!roles.includes(owner.role)) {
      throw new Problem('forbidden', { detail: `This needs a key of the role ${roles.join(' or ')}.` })
    }
  }
  // The contract tells them.
  return Object.assign(hook, { roles })
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
