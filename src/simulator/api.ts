import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { authenticate } from './auth.ts'
import type { Endpoint } from './endpoint.ts'
import { ApiError, internalError, invalidRequest, rateLimited, unknownRoute } from './errors.ts'
import { present } from './expand.ts'
import type { Fate } from './faults.ts'
import { decodeForm, type Form } from './form.ts'
import type { Keyed } from './idempotency.ts'
import { otherEndpoints } from './other-endpoints.ts'
import { paymentIntentEndpoints } from './payment-intent-endpoints.ts'
import { newId } from './random.ts'
import { type Scope, type StoredAnswer, scopeName } from './records.ts'
import { accountApiVersion, renderIntent, renderPaymentMethod } from './render.ts'
import type { LoggedRequest } from './request-log.ts'
import type { World } from './world.ts'

type Answer = { status: number; body: string; headers?: Record<string, string> }
type Received = { request: FastifyRequest; reply: FastifyReply; id: string; path: string; logged: LoggedRequest }

const lost = Symbol('the answer is lost')

/** The part of Stripe's API that the simulator speaks, below /v1. */
export function apiRoutes(world: World) {
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
    for (const endpoint of [...paymentIntentEndpoints, ...otherEndpoints]) {
      app.route({
        method: endpoint.method,
        url: endpoint.path,
        handler: (request, reply) => serve(world, endpoint, request, reply),
      })
    }
    app.setErrorHandler((error: FastifyError, request, reply) => {
      const refused = (error.statusCode ?? 500) < 500
      const answer = errorAnswer(world, refused ? invalidRequest(error.message) : error)
      receive(world, request, reply).logged.status = answer.status
      return reply.code(answer.status).send(answer.body)
    })
  }
}

/** Whatever has no route, with Stripe's 404. */
export function unknownRoutes(world: World) {
  return (request: FastifyRequest, reply: FastifyReply) => serve(world, undefined, request, reply)
}

/** authenticate -> read the form -> replay, or execute and store -> answer; faults strike in between. */
async function serve(world: World, endpoint: Endpoint | undefined, request: FastifyRequest, reply: FastifyReply) {
  const received = receive(world, request, reply)
  let answer: Answer | typeof lost
  try {
    const scope = authenticate(request.headers)
    received.logged.account = scope.account
    received.logged.livemode = scope.livemode
    if (endpoint === undefined) throw unknownRoute(request.method, received.path)
    answer = await dispatch(world, endpoint, scope, received)
  } catch (error) {
    answer = errorAnswer(world, error)
  }
  if (answer === lost) return
  received.logged.status = answer.status
  reply.code(answer.status).headers(answer.headers ?? {})
  // A repeat under the same key would only replay it.
  if (answer.status === 500) reply.header('stripe-should-retry', 'false')
  return reply.send(answer.body)
}

function receive(world: World, request: FastifyRequest, reply: FastifyReply): Received {
  const { headers } = request
  const id = newId('req_', 14)
  const path = request.url.split('?', 1)[0] as string
  const key = headers['idempotency-key']
  const version = headers['stripe-version']
  reply.header('content-type', 'application/json').header('request-id', id)
  reply.header('stripe-version', version ?? accountApiVersion)
  if (key !== undefined) reply.header('idempotency-key', key).header('original-request', id)
  if (headers['stripe-account']) reply.header('stripe-account', headers['stripe-account'])
  const traced = ['traceparent', 'tracestate', 'x-request-id'].filter((name) => headers[name] !== undefined)
  const logged: LoggedRequest = {
    id,
    at: new Date().toISOString(),
    method: request.method,
    path,
    idempotency_key: key === undefined ? null : String(key),
    params: null,
    account: null,
    livemode: null,
    stripe_version: version === undefined ? null : String(version),
    headers: Object.fromEntries(traced.map((name) => [name, String(headers[name])])),
    status: null,
    replayed: false,
    fault: null,
  }
  world.requests.add(logged)
  return { request, reply, id, path, logged }
}

async function dispatch(
  world: World,
  endpoint: Endpoint,
  scope: Scope,
  received: Received,
): Promise<Answer | typeof lost> {
  const { request, reply, logged, path } = received
  const version = readVersion(logged.stripe_version)
  const form = readForm(request, path)
  logged.params = form
  const key = request.method === 'POST' ? logged.idempotency_key : null
  const keyed = key === null ? undefined : identify(scope, key, path, form)
  const stored = keyed && world.keys.find(keyed)
  const action = stored ? undefined : endpoint.prepare(form, version)
  const fate = world.faults.pick(request.method, path, stored === undefined)
  logged.fault = fate.fault ?? (fate.latencyMs > 0 ? 'latency' : null)
  if (fate.fault === 'drop_before') return drop(received)
  if (fate.fault === 'rate_limit') throw rateLimited()

  const { epoch } = world
  if (keyed && action) world.keys.claim(keyed)
  try {
    if (fate.latencyMs > 0) await sleep(fate.latencyMs, undefined, { ref: false })
    if (world.epoch !== epoch) return drop(received)
    let answer: Answer
    if (stored) {
      logged.replayed = true
      reply.header('idempotent-replayed', 'true').header('original-request', stored.request_id)
      answer = stored
    } else {
      answer = execute(world, action as Prepared, { scope, version, keyed, fate, received })
    }
    if (fate.fault === 'drop_after') return drop(received)
    if (fate.fault === 'hang') return hang(received)
    return answer
  } finally {
    if (keyed && action && world.epoch === epoch) world.keys.release(keyed)
  }
}

type Prepared = ReturnType<Endpoint['prepare']>
type Execution = { scope: Scope; version: string; keyed: Keyed | undefined; fate: Fate; received: Received }

/** Runs the endpoint and books effect and answer in one step; nothing else runs in between. */
function execute(world: World, action: Prepared, execution: Execution): Answer {
  const { scope, version, keyed, fate, received } = execution
  const { books } = world
  const change = world.begin({ id: received.id, idempotency_key: keyed?.key ?? null })
  const id = (received.request.params as { id?: string }).id ?? ''
  let answer: Answer
  try {
    if (fate.fault === 'error_before') throw internalError()
    const resource = action.run({ change, books, scope, id, version })
    answer = { status: 200, body: JSON.stringify(present(books, resource, action.expand)) }
  } catch (error) {
    answer = errorAnswer(world, error)
  }
  if (fate.fault === 'error_after') answer = errorAnswer(world, internalError())
  const { status, body } = answer
  const stored: StoredAnswer | undefined = keyed && { ...keyed, status, body, request_id: received.id, at: Date.now() }
  world.commit(change, stored)
  return answer
}

function readForm(request: FastifyRequest, path: string): Form {
  if (request.method === 'GET') return decodeForm(request.url.slice(path.length + 1))
  const body = (request.body as string | undefined) ?? ''
  const type = request.headers['content-type']
  if (body !== '' && type !== undefined && !type.startsWith('application/x-www-form-urlencoded')) {
    throw invalidRequest('Invalid request (check that your POST content type is application/x-www-form-urlencoded).')
  }
  return decodeForm(body)
}

function identify(scope: Scope, key: string, path: string, form: Form): Keyed {
  if (key === '') throw invalidRequest('Idempotency keys must not be empty.')
  return { scope: scopeName(scope), key, path, fingerprint: hash('sha1', JSON.stringify(sorted(form)), 'base64') }
}

/** The order in which parameters were sent does not matter. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, entry]) => [name, sorted(entry)])
}

function readVersion(header: string | null): string {
  if (header === null) return accountApiVersion
  if (/^\d{4}-\d{2}-\d{2}(\.\w+)?$/.test(header)) return header
  throw invalidRequest(`Invalid Stripe API version: ${header}`)
}

function drop({ request, reply }: Received): typeof lost {
  reply.hijack()
  request.raw.socket.destroy()
  return lost
}

function hang({ reply }: Received): typeof lost {
  reply.hijack()
  return lost
}

function errorAnswer(world: World, error: unknown): Answer {
  if (!(error instanceof ApiError)) {
    world.log.error({ err: error }, 'the simulator failed')
    return errorAnswer(world, internalError())
  }
  const { fields, intent, status, headers } = error
  const method = intent?.last_payment_error?.payment_method
  const inside = {
    ...fields,
    ...(fields.code === undefined
      ? {}
      : { doc_url: `https://docs.stripe.com/error-codes#${fields.code.replaceAll('_', '-')}` }),
    ...(intent ? { payment_intent: renderIntent(intent) } : {}),
    ...(intent && method && status === 402 ? { payment_method: renderPaymentMethod(method, intent) } : {}),
  }
  return { status, headers, body: JSON.stringify({ error: inside }) }
}
