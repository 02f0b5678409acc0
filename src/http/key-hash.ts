import type { FastifyRequest } from 'fastify'
import { hashKeyForLog, parseIdempotencyKey } from '../domain/idempotency-key.ts'

/** The attempt that a request is about, as the log and the trace name it: by its header, or else by its path. */
export function keyHashOf(request: FastifyRequest): string | undefined {
  if (request.keyHash === null) request.keyHash = hashOfKey(request)
  return request.keyHash
}

function hashOfKey(request: FastifyRequest): string | undefined {
  const parsed = parseIdempotencyKey(request.raw.rawHeaders)
  if (parsed.kind === 'key') return hashKeyForLog(parsed.key)
  const { key } = (request.params ?? {}) as { key?: unknown }
  return typeof key === 'string' ? hashKeyForLog(key) : undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until it is first asked for; undefined where the request names no attempt. */
    keyHash: string | undefined | null
  }
}
