import { Readable } from 'node:stream'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyError, FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { Change } from './books.ts'
import type { Collection } from './collection.ts'
import { intentsAsJson, viewIntent } from './control-view.ts'
import { moveDispute, openDispute } from './disputes.ts'
import { ApiError, invalidRequest, noSuch } from './errors.ts'
import { render } from './expand.ts'
import { type FaultRule, faultNames } from './faults.ts'
import { handMadeEvent } from './hand-made-event.ts'
import { cancel, finish } from './payments.ts'
import type { ChargeRecord, PaymentIntentRecord, Scope } from './records.ts'
import { refund, settleRefund } from './refunds.ts'
import { type Misbehaviour, wellBehaved } from './webhooks.ts'
import type { World } from './world.ts'

const strict = { additionalProperties: false }
const optionalAmount = Type.Optional(Type.Integer({ minimum: 1 }))
const optionalSeed = Type.Optional(Type.Integer())
const byId = Type.Object({ id: Type.String() })
const probability = Type.Number({ minimum: 0, maximum: 1 })
const anyObject = Type.Record(Type.String(), Type.Unknown())

const faultRule = Type.Object(
  {
    method: Type.String({ pattern: '^([A-Za-z]+|[*])$', default: '*' }),
    path: Type.String({ default: '/' }),
    fault: Type.Enum([...faultNames]),
    probability: Type.Optional(probability),
    times: Type.Optional(Type.Integer({ minimum: 1 })),
    latency_ms: Type.Optional(Type.Number({ minimum: 0, maximum: 600_000 })),
  },
  strict,
)

const bodies = {
  faults: Type.Object({ rules: Type.Array(faultRule), seed: optionalSeed }, strict),
  webhooks: Type.Object(
    {
      delay_ms: Type.Number({ minimum: 0, maximum: 600_000, default: 0 }),
      duplicates: Type.Number({ minimum: 0, maximum: 20, default: 0 }),
      shuffle: Type.Boolean({ default: false }),
      drop: Type.Number({ minimum: 0, maximum: 1, default: 0 }),
      seed: optionalSeed,
    },
    strict,
  ),
  action: Type.Object({ outcome: Type.Enum(['succeed', 'fail']) }, strict),
  refund: Type.Object({ payment_intent: Type.String(), amount: optionalAmount }, strict),
  refundStatus: Type.Object({ status: Type.Enum(['succeeded', 'failed']) }, strict),
  dispute: Type.Object(
    {
      payment_intent: Type.String(),
      amount: optionalAmount,
      status: Type.Enum(['needs_response', 'warning_needs_response'], { default: 'needs_response' }),
      reason: Type.String({ default: 'fraudulent' }),
    },
    strict,
  ),
  disputeOutcome: Type.Object(
    {
      outcome: Type.Enum(['warning_under_review', 'warning_closed', 'needs_response', 'under_review', 'won', 'lost']),
    },
    strict,
  ),
  event: Type.Object(
    {
      type: Type.String({ minLength: 1 }),
      data: Type.Object({ object: anyObject, previous_attributes: Type.Optional(anyObject) }, strict),
      account: Type.Optional(Type.String()),
      livemode: Type.Optional(Type.Boolean()),
    },
    strict,
  ),
}

/** The control below /_sim: how to make the simulator misbehave, play the customer, the bank and the dashboard, and see
 * what really happened. A call that is refused answers 4xx with `{error: {message}}`. */
export function controlRoutes(world: World) {
  return async (plain: FastifyInstance): Promise<void> => {
    const app = plain.withTypeProvider<TypeBoxTypeProvider>()
    const { books } = world

    /** One step of the control, booked at once. */
    const step = <T>(act: (change: Change) => T): T => {
      const change = world.begin(null)
      const result = act(change)
      world.commit(change)
      return result
    }

    app.setErrorHandler((error: FastifyError, _request, reply) => {
      const status = error instanceof ApiError ? error.status : (error.statusCode ?? 500)
      if (status >= 500) world.log.error({ err: error }, 'the simulator failed')
      return reply.code(status).send({ error: { message: describe(error) } })
    })
    app.removeContentTypeParser('application/json')
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
      try {
        done(null, body === '' ? {} : JSON.parse(body as string))
      } catch {
        done(invalidRequest('The body is not valid JSON.'))
      }
    })
    app.setNotFoundHandler((request, reply) =>
      reply.code(404).send({ error: { message: `No such control: ${request.method} ${request.url}` } }),
    )

    app.post('/faults', { schema: { body: bodies.faults } }, (request, reply) => {
      const { rules, seed } = request.body
      world.faults.add(rules as FaultRule[], seed)
      return reply.send({ rules: world.faults.rules })
    })
    app.get('/faults', (_request, reply) => reply.send({ rules: world.faults.rules }))
    app.delete('/faults', (_request, reply) => {
      world.faults.clear()
      return reply.send({ rules: [] })
    })

    app.put('/webhooks', { schema: { body: bodies.webhooks } }, (request, reply) => {
      const { seed, ...how } = request.body
      world.webhooks.misbehave({ ...wellBehaved, ...(how as Partial<Misbehaviour>) }, seed)
      return reply.send(world.webhooks.misbehaviour)
    })

    app.get('/payment_intents', (_request, reply) =>
      reply.type('application/json').send(Readable.from(intentsAsJson(world))),
    )
    app.get('/payment_intents/:id', { schema: { params: byId } }, (request, reply) =>
      reply.send(viewIntent(world, need(books.intents, 'payment_intent', request.params.id))),
    )
    app.post('/payment_intents/:id/action', { schema: { params: byId, body: bodies.action } }, (request, reply) => {
      const intent = need(books.intents, 'payment_intent', request.params.id)
      return reply.send(render(step((change) => finish(change, intent, request.body.outcome))))
    })
    app.post('/payment_intents/:id/expire', { schema: { params: byId } }, (request, reply) => {
      const intent = need(books.intents, 'payment_intent', request.params.id)
      if (intent.status !== 'requires_capture') {
        throw invalidRequest(`Only a hold can lapse, and ${intent.id} has a status of ${intent.status}.`)
      }
      return reply.send(render(step((change) => cancel(change, intent, 'automatic'))))
    })

    app.post('/refunds', { schema: { body: bodies.refund } }, (request, reply) => {
      const charge = paidCharge(world, request.body.payment_intent)
      const asked = { amount: request.body.amount, reason: 'requested_by_customer', metadata: {} }
      return reply.send(render(step((change) => refund(change, charge, asked))))
    })
    app.post('/refunds/:id', { schema: { params: byId, body: bodies.refundStatus } }, (request, reply) => {
      const record = need(books.refunds, 'refund', request.params.id)
      return reply.send(render(step((change) => settleRefund(change, record, request.body.status))))
    })

    app.post('/disputes', { schema: { body: bodies.dispute } }, (request, reply) => {
      const { payment_intent, amount, status, reason } = request.body
      const charge = paidCharge(world, payment_intent)
      return reply.send(render(step((change) => openDispute(change, charge, { amount, status, reason }))))
    })
    app.post('/disputes/:id', { schema: { params: byId, body: bodies.disputeOutcome } }, (request, reply) => {
      const dispute = need(books.disputes, 'dispute', request.params.id)
      return reply.send(render(step((change) => moveDispute(change, dispute, request.body.outcome))))
    })

    app.post('/events', { schema: { body: bodies.event } }, (request, reply) =>
      reply.send(render(step((change) => handMadeEvent(world, change, request.body)))),
    )
    app.get('/events', (_request, reply) => reply.send({ data: [...books.events.all()].map((event) => render(event)) }))
    app.post('/events/:id/redeliver', { schema: { params: byId } }, (request, reply) => {
      const event = need(books.events, 'event', request.params.id)
      if (!world.webhooks.areSent) throw invalidRequest('There is no webhook URL to deliver to.')
      world.webhooks.deliver(event)
      return reply.send(render(event))
    })

    app.get('/requests', (_request, reply) => reply.send({ data: world.requests.latest() }))
    app.post('/reset', (_request, reply) => {
      world.reset()
      return reply.send({})
    })
  }
}

/** Names the allowed values, which the validator's own message does not. */
function describe(error: FastifyError): string {
  const allowed = error.validation?.[0]?.params.allowedValues
  return Array.isArray(allowed) ? `${error.message}: ${allowed.join(', ')}` : error.message
}

function need<R extends Scope & { id: string; created: number }>(shelf: Collection<R>, what: string, id: string): R {
  const record = shelf.peek(id)
  if (record === undefined) throw noSuch(what, id, 'id', 404)
  return record
}

function paidCharge(world: World, intentId: string): ChargeRecord {
  const intent: PaymentIntentRecord = need(world.books.intents, 'payment_intent', intentId)
  const charge = world.books.charges.peek(intent.latest_charge ?? '')
  if (charge?.status !== 'succeeded') throw invalidRequest(`${intentId} has not been paid.`)
  return charge
}
