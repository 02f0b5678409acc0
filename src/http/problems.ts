/** Every error becomes problem details (RFC 9457); what is ours is hidden from the client and logged. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ConnectionError, FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, problemDocument } from '../domain/problem.ts'
import { isDatabaseUnavailable } from '../runtime/database.ts'
import { orderNamedBy } from './order-named.ts'

const retryAfterSeconds = 2
/** Of what is wrong with a body; the first ones help, a thousand do not. */
const errorsMax = 20

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { retryAfterSeconds: seconds, replayed } = problem.options
  reply.request.problemCode = problem.code
  reply.request.orderId ??= problem.options.orderId ?? orderNamedBy(problem.options.members)
  // So that a client can tell a coding that is refused from a type (RFC 9110, 12.5.3).
  if (problem.code === 'unsupported_media_type' && isEncoded(reply.request)) reply.header('accept-encoding', 'identity')
  if (seconds !== undefined) reply.header('retry-after', String(Math.ceil(seconds)))
  if (replayed) reply.header('idempotent-replayed', 'true')
  return reply
    .code(problem.status)
    .header('content-type', 'application/problem+json; charset=utf-8')
    .send(JSON.stringify(problemDocument(problem, reply.request.id)))
}

/** Whether its body is said to be compressed, or coded otherwise. */
export function isEncoded({ headers }: FastifyRequest): boolean {
  return !/^\s*(identity\s*)?$/i.test(headers['content-encoding'] ?? '')
}

/** Puts an error into words and into the log. */
export function problemFor(error: FastifyError | Error, request: FastifyRequest): Problem {
  const problem = error instanceof Problem ? error : problemOf(error)
  // The surplus is counted; a line for each would be one more burden.
  if (problem.status >= 500 && problem.code !== 'overloaded') {
    const level = problem.status === 503 ? 'warn' : 'error'
    request.log[level](
      { err: error instanceof Problem ? (error.cause ?? undefined) : error, code: problem.code },
      'request failed',
    )
  }
  return problem
}

/** Answers what is no HTTP that the server could read: there is no request then, and the connection ends. */
export function refuseMalformedHttp(error: ConnectionError, socket: Socket): void {
  // https://nodejs.org/api/http.html#event-clienterror
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy(error)
  const problem = new Problem(
    error.code === 'HPE_HEADER_OVERFLOW'
      ? 'headers_too_large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? 'request_timeout'
        : 'invalid_request',
    { detail: 'The HTTP request cannot be read.' },
  )
  const body = JSON.stringify(problemDocument(problem, `req_${randomUUID()}`))
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\nConnection: close\r\n` +
      `Content-Type: application/problem+json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
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
      { errors: errors.slice(0, errorsMax) },
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
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return 'The body is not as long as Content-Length says.'
    case 'FST_ERR_BAD_URL':
      return 'The path is not validly percent-encoded.'
    default:
      return 'The request is malformed.'
  }
}
