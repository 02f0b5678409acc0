/** Clients of a checkout ask one thing of every error: may a new key be made? */
import type { FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { parseIdempotencyKey } from '../domain/idempotency-key.ts'
import { Problem } from '../domain/problem.ts'
import { isNewKeySafe } from '../flows/saga/look-up.ts'

/**
 * The problem with `new_key_safe`. Where nothing has said it yet, the request was refused before its key was looked at,
 * and an earlier one may have used the key: a client whose API key was revoked between two tries must not be told that
 * the first one had no effect. So it is true only where there is no attempt with this key, or one that ended unpaid.
 */
export async function withNewKeySafe(deps: Deps, request: FastifyRequest, problem: Problem): Promise<Problem> {
  const { options } = problem
  if (options.members !== undefined && 'new_key_safe' in options.members) return problem
  const safe =
    problem.status < 500 &&
    request.routeOptions.config.tellsNewKeySafe === 'by_header' &&
    (await isKeyOfRequestFree(deps, request))
  return new Problem(problem.code, {
    ...options,
    detail: problem.message,
    members: { ...options.members, new_key_safe: safe },
  })
}

async function isKeyOfRequestFree(deps: Deps, request: FastifyRequest): Promise<boolean> {
  if (request.caller === null) return false
  const parsed = parseIdempotencyKey(request.raw.rawHeaders)
  // No attempt can have been made without a key that is valid.
  return parsed.kind !== 'key' || isNewKeySafe(deps, request.caller.tenantId, parsed.key)
}
