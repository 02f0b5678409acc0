/** Every error becomes problem details (RFC 9457); what is ours is hidden from the client and logged. */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, type ProblemOptions, problemDocument } from '../domain/problem.ts'
import { isDatabaseUnavailable } from '../runtime/database.ts'

const retryAfterSeconds = 2

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { retryAfterSeconds: seconds, replayed } = problem.options
  if (seconds !== undefined) reply.header('retry-after', String(Math.ceil(seconds)))
  if (replayed) reply.header('idempotent-replayed', 'true')
  return reply
    .code(problem.status)
    .header('content-type', 'application/problem+json; charset=utf-8')
    .send(JSON.stringify(problemDocument(problem, reply.request.id)))
}

/** The error handler of the app. */
export function handleError(error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const found = error instanceof Problem ? error : problemOf(error)
  if (found.status >= 500) {
    const level = found.status === 503 ? 'warn' : 'error'
    request.log[level](
      { err: error instanceof Problem ? (error.cause ?? undefined) : error, code: found.code },
      'request failed',
    )
  }
  // Clients of a checkout ask one thing of every error: may a new key be made?
  const problem = request.routeOptions.config.tellsNewKeySafe ? withNewKeySafe(found) : found
  return sendProblem(reply, problem)
}

function problemOf(error: FastifyError | Error): Problem {
  if (isDatabaseUnavailable(error)) {
    return new Problem('database_unavailable', {
      detail: 'The database cannot be reached at the moment. Repeat the request; with the same key it is safe.',
      retryAfterSeconds,
      cause: error,
    })
  }
  const { statusCode, validation, code } = error as FastifyError
  if (validation !== undefined) {
    const errors = validation
      .filter((fault) => fault.keyword !== 'boolean')
      .map((fault) => ({
        pointer: fault.instancePath,
        detail:
          fault.keyword === 'additionalProperties'
            ? `unknown: ${(fault.params.additionalProperties as string[] | undefined)?.join(', ') ?? ''}`
            : (fault.message ?? 'is not valid'),
      }))
    const [first] = errors
    return invalidRequest(
      first === undefined ? 'is not valid' : `${where(error as FastifyError)}${first.pointer}: ${first.detail}`,
      {
        errors,
      },
    )
  }
  if (statusCode === 413) return new Problem('payload_too_large')
  if (statusCode === 415) return new Problem('unsupported_media_type')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return invalidRequest(clientMessage(code))
  return new Problem('internal', { cause: error })
}

export function invalidRequest(detail: string, members?: Record<string, unknown>): Problem {
  return new Problem('invalid_request', { detail, ...(members === undefined ? {} : { members }) })
}

function where(error: FastifyError): string {
  return error.validationContext ?? 'body'
}

// Fastify's own messages, without what the client sent.
function clientMessage(code: string | undefined): string {
  switch (code) {
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return 'The body is empty; it must be a JSON object.'
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return 'The body is not valid JSON.'
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'The body is not as long as Content-Length says.'
    default:
      return 'The request is malformed.'
  }
}

/** Before any effect a new key is as good as the old one; where it may have had one, it is not. */
function withNewKeySafe(problem: Problem): Problem {
  const { members } = problem.options
  if (members !== undefined && 'new_key_safe' in members) return problem
  const options: ProblemOptions = {
    ...problem.options,
    detail: problem.message,
    members: { ...members, new_key_safe: problem.status < 500 && problem.status !== 429 },
  }
  return new Problem(problem.code, options)
}
