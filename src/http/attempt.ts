/** Requests that make an attempt, and its answer. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest, preParsingHookHandler, preValidationHookHandler } from 'fastify'
import type { Deps } from '../deps.ts'
import { parseIdempotencyKey } from '../domain/idempotency-key.ts'
import { Problem } from '../domain/problem.ts'
import type { Answer } from '../flows/saga/answers.ts'
import { answerAtHand } from '../flows/saga/at-hand.ts'
import { attemptId } from '../flows/saga/replay-cache.ts'
import { callerOf } from './auth.ts'
import { parseJsonBody } from './json-body.ts'

/** The request's idempotency key. Throws the `Problem` where there is none or it is malformed. */
function keyOf(request: FastifyRequest): string {
  const parsed = parseIdempotencyKey(request.raw.rawHeaders)
  if (parsed.kind === 'key') return parsed.key
  if (parsed.kind === 'missing') {
    throw new Problem('idempotency_key_missing', {
      detail: 'Send an Idempotency-Key header: one random key per attempt, the same on every repeat.',
    })
  }
  throw new Problem('idempotency_key_invalid', { detail: parsed.reason })
}

/**
 * Refuses attempts for which there is no room, before their body is read: under a storm most of the work would go into what
 * is refused anyway. What repeats an attempt that is at hand needs no room. After `admit`.
 */
export function needsRoom({ admission, replays, twins }: Pick<Deps, 'admission' | 'replays' | 'twins'>) {
  const hook: preParsingHookHandler = (request, _reply, _payload, done) => {
    const { tenantId } = callerOf(request)
    const refusal = admission.refusal(tenantId)
    if (refusal === undefined) return done()
    const parsed = parseIdempotencyKey(request.raw.rawHeaders)
    const id = parsed.kind === 'key' ? attemptId({ tenantId, key: parsed.key }) : null
    done(id !== null && (replays.has(id) || twins.has(id)) ? undefined : refusal)
  }
  return hook
}

/**
 * Answers what repeats an attempt to the byte and has its answer at hand; reads the body of everything else. Most of what a
 * repeat costs is reading it, and most repeats are a client's own bytes sent again. For a route that `takesBytes`.
 */
export function answersRepeats(deps: Deps): preValidationHookHandler {
  return (request, reply, done) => {
    const { body } = request
    if (!Buffer.isBuffer(body)) return done()
    const parsed = parseIdempotencyKey(request.raw.rawHeaders)
    if (parsed.kind === 'key') {
      request.fingerprint = hash('sha256', body, 'base64')
      const { tenantId } = callerOf(request)
      const answer = answerAtHand(deps, { tenantId, key: parsed.key, fingerprint: request.fingerprint })
      if (answer instanceof Promise) return void answer.then((given) => sendAnswer(reply, given)).catch(done)
      if (answer !== undefined) return void sendAnswer(reply, answer)
    }
    request.body = parseJsonBody(body)
    done()
  }
}

/** What asks for an attempt: whose it is, its key, and the request as it is digested, for which `path` is the one that
 * was called. Throws the `Problem` where there is no key or it is malformed. */
export function attemptOf(request: FastifyRequest, path: string) {
  const { tenantId, connectedAccount, role } = callerOf(request)
  return {
    tenantId,
    connectedAccount,
    key: keyOf(request),
    requestId: request.id,
    address: role === 'storefront' ? request.ip : null,
    fingerprint: request.fingerprint,
    method: 'POST',
    path,
  }
}

/** `pathOf` tells where what was created is found, by its order. */
export function sendAnswer(
  reply: FastifyReply,
  answer: Answer,
  pathOf = (orderId: string) => `/v1/orders/${orderId}`,
): FastifyReply {
  reply.request.orderId = answer.aboutOrderId
  if (answer.status >= 400) reply.request.problemCode = (JSON.parse(answer.body) as { code: string }).code
  reply
    .code(answer.status)
    .header(
      'content-type',
      answer.status >= 400 ? 'application/problem+json; charset=utf-8' : 'application/json; charset=utf-8',
    )
  if (answer.status === 201 && answer.orderId !== null) reply.header('location', pathOf(answer.orderId))
  if (answer.retryAfterMs !== null) reply.header('retry-after', retryAfter(answer.retryAfterMs))
  if (answer.replayed) reply.header('idempotent-replayed', 'true')
  return reply.send(answer.body)
}

/** For the Retry-After header: whole seconds, at least one. */
export function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)))
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the body's bytes, where the route takes them. */
    fingerprint: string | null
  }
}
