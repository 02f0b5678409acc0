import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { CallLimits, ChargeRequest } from '../../src/provider/port.ts'
import { createStripeProvider, type StripeOptions } from '../../src/provider/stripe.ts'
import { until } from '../support/until.ts'
import { httpAnswer, type RawServer, startRawServer } from './raw-server.ts'

type Provider = ReturnType<typeof createStripeProvider>

const target = { connectedAccount: null, account: 'acct_1', livemode: false, apiVersion: '2026-08-26.dahlia' }
const request: ChargeRequest = {
  target,
  providerKey: 'tenant:key',
  parameterVersion: 1,
  amount: 1250,
  currency: 'EUR',
  capture: 'automatic',
  paymentMethod: 'pm_card_visa',
  offSession: false,
  metadata: { tenant: 'tenant', order: 'ord_1', key: 'key' },
}
const intent = {
  id: 'pi_1',
  object: 'payment_intent',
  status: 'succeeded',
  amount: 1250,
  amount_received: 1250,
  amount_capturable: 0,
  currency: 'eur',
  livemode: false,
  created: 1_800_000_000,
  client_secret: 'pi_1_secret_x',
  latest_charge: 'ch_1',
  last_payment_error: null,
  metadata: request.metadata,
}
/** A limit that is not reached. */
const patient: CallLimits = { timeoutMs: 20_000 }
/** A limit that is. */
const short: CallLimits = { timeoutMs: 400 }

const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const opened of open.splice(0).reverse()) await opened.close()
})

function connect(apiBase: string, more: Partial<StripeOptions> = {}): Provider {
  const provider = createStripeProvider({ secretKey: 'sk_test_1', apiBase, ...more })
  open.push(provider)
  return provider
}

async function serve(answer: (socket: Socket, request: string) => void): Promise<RawServer> {
  const server = await startRawServer(answer)
  open.push(server)
  return server
}

/** What a charge comes to where the server does this with every request. */
async function chargeWhere(answer: (socket: Socket, request: string) => void, limits = patient) {
  const server = await serve(answer)
  const { outcome, calls } = await connect(server.url).charge(request, limits)
  return { outcome, call: calls[0], calls, requests: server.requests }
}

const unknown = { kind: 'unknown', replayedFailure: false, intentId: null }

test('a good answer is read, so that the faults below are the only difference', async () => {
  const { outcome, call } = await chargeWhere((socket) =>
    socket.write(httpAnswer(200, intent, { 'request-id': 'req_1' })),
  )
  expect(outcome).toMatchObject({ kind: 'succeeded', payment: { intentId: 'pi_1', chargeId: 'ch_1' } })
  expect(call).toMatchObject({ requestId: 'req_1', httpStatus: 200 })
})

test.each<[string, (socket: Socket) => void]>([
  ['reset before an answer', (socket) => socket.resetAndDestroy()],
  ['closed before an answer', (socket) => socket.end()],
  [
    'reset in the middle of the head',
    (socket) => socket.write('HTTP/1.1 200 OK\r\ncont', () => socket.resetAndDestroy()),
  ],
  [
    'reset in the middle of the body',
    (socket) => socket.write(httpAnswer(200, intent).slice(0, -20), () => socket.resetAndDestroy()),
  ],
  ['closed in the middle of the body', (socket) => socket.end(httpAnswer(200, intent).slice(0, -20))],
])('a connection %s is unknown, and is not silently tried again', async (_, misbehave) => {
  const { outcome, call, requests } = await chargeWhere(misbehave)
  expect(outcome).toEqual({ ...unknown, reason: 'connection_lost', worthRetrying: true })
  expect(call?.errorCode).toMatch(/^(ECONNRESET|EPIPE|connection_lost)$/)
  expect(requests).toHaveLength(1)
})

test('a kept connection that the server has closed meanwhile is unknown, and is not silently tried again', async () => {
  let answered = 0
  const server = await serve((socket) => {
    if (answered++ === 0) socket.write(httpAnswer(200, intent))
    else socket.resetAndDestroy()
  })
  const provider = connect(server.url)
  expect((await provider.charge(request, patient)).outcome.kind).toBe('succeeded')
  const { outcome } = await provider.charge(request, patient)
  expect(outcome).toMatchObject({ reason: 'connection_lost', worthRetrying: true })
  expect(server.requests).toHaveLength(2)
})

/** A good answer, so long that it takes seconds to trickle in. */
const longIntent = JSON.stringify({ ...intent, description: 'x'.repeat(5000) })
const chunked = `${[...longIntent.matchAll(/.{1,20}/g)].map(([part]) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`

test.each<[string, (socket: Socket) => void]>([
  ['silence', () => {}],
  ['a head that trickles', (socket) => trickle(socket, httpAnswer(200, intent, { 'x-long': 'x'.repeat(5000) }))],
  ['a body that trickles', (socket) => trickle(socket, httpAnswer(200, longIntent))],
  [
    'a body in chunks that trickle',
    (socket) => trickle(socket, `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunked}`),
  ],
])('%s does not outlast the limit of the whole call', async (_, misbehave) => {
  const { outcome, call } = await chargeWhere(misbehave, short)
  expect(outcome).toEqual({ ...unknown, reason: 'timeout', worthRetrying: true })
  expect(call).toMatchObject({ outcome: 'unknown', errorCode: 'timeout' })
})

test('a good answer that trickles in within the limit is read', async () => {
  const { outcome } = await chargeWhere((socket) => trickle(socket, httpAnswer(200, intent)))
  expect(outcome.kind).toBe('succeeded')
})

test('a call that is given up closes its connection', async () => {
  let closed = false
  await chargeWhere((socket) => socket.on('close', () => (closed = true)), short)
  await until(() => closed, { what: 'the connection is closed' })
})

test('a call that waits in vain for one of our own connections was not sent', async () => {
  const server = await serve(() => {})
  const provider = connect(server.url, { maxSockets: 1 })
  const first = provider.charge(request, { timeoutMs: 1500 })
  await until(() => server.requests.length === 1, { what: 'the first request arrives' })
  const second = await provider.charge(request, short)
  expect(second.outcome).toEqual({ kind: 'not_sent', reason: 'no_time', alert: false, retryAfterMs: null })
  expect((await first).outcome).toMatchObject({ reason: 'timeout' })
  expect(server.requests).toHaveLength(1)
})

test.each([
  ['no HTTP', 'SSH-2.0-OpenSSH_9.7\r\n\r\n'],
  ['HTML', httpAnswer(200, '<html>Welcome to the hotel wifi</html>')],
  ['an HTML refusal of something in between', httpAnswer(403, '<html>Forbidden</html>')],
  ['an empty body', httpAnswer(200, '')],
  ['half of the JSON', httpAnswer(200, JSON.stringify(intent).slice(0, -20))],
  ['a JSON string', httpAnswer(200, '"ok"')],
  ['a JSON null', httpAnswer(200, 'null')],
  ['a JSON list', httpAnswer(200, [intent])],
  ['a redirect', httpAnswer(302, '', { location: 'http://127.0.0.1:1/' })],
  ['a 429 without an error', httpAnswer(429, { message: 'slow down' })],
  ['an error that is a string', httpAnswer(400, { error: 'invalid_request' })],
  ['a payment beside an error', httpAnswer(200, { ...intent, error: { type: 'api_error' } })],
])('%s is no answer', async (_, bytes) => {
  const { outcome, requests } = await chargeWhere((socket) => socket.end(bytes))
  expect(outcome).toEqual({ ...unknown, reason: 'unreadable_answer', worthRetrying: true })
  expect(requests).toHaveLength(1)
})

test.each([
  ['without its amount', { ...intent, amount: undefined }],
  ['with a fraction for an amount', { ...intent, amount: 12.5 }],
  ['of another kind', { ...intent, object: 'setup_intent' }],
  ['in a currency that is none', { ...intent, currency: 'xxx' }],
  ['in a state nobody has heard of', { ...intent, status: 'teleported' }],
])('a payment %s is unknown, and still named', async (_, body) => {
  const { outcome } = await chargeWhere((socket) => socket.write(httpAnswer(200, body)))
  expect(outcome).toEqual({ ...unknown, reason: 'unreadable_answer', worthRetrying: false, intentId: 'pi_1' })
})

test.each([
  ['HTML 502', httpAnswer(502, '<html>Bad gateway</html>')],
  ['JSON 503 without an error', httpAnswer(503, { message: 'upstream' })],
  ['JSON 500', httpAnswer(500, { error: { type: 'api_error', message: 'boom' } })],
])('%s is a provider error', async (_, bytes) => {
  const { outcome, call } = await chargeWhere((socket) => socket.write(bytes))
  expect(outcome).toEqual({ ...unknown, reason: 'provider_error', worthRetrying: true })
  expect(call).toMatchObject({ httpStatus: Number(bytes.slice(9, 12)) })
})

test('a 500 that Stripe says to be final is not worth sending again', async () => {
  const error = { error: { type: 'api_error', message: 'boom' } }
  const { outcome } = await chargeWhere((socket) =>
    socket.write(httpAnswer(500, error, { 'stripe-should-retry': 'false' })),
  )
  expect(outcome).toEqual({ ...unknown, reason: 'provider_error', worthRetrying: false })
})

test('Stripe says when to come back', async () => {
  const error = { error: { type: 'invalid_request_error', code: 'rate_limit', message: 'slow down' } }
  const { outcome } = await chargeWhere((socket) => socket.write(httpAnswer(429, error, { 'retry-after': '3' })))
  expect(outcome).toEqual({ kind: 'not_sent', reason: 'rate_limited', alert: false, retryAfterMs: 3000 })
})

test('an error text never becomes a code', async () => {
  const code = 'card of Jane Roe'
  const error = { error: { type: 'card_error', code, decline_code: code, message: code } }
  const { outcome, call } = await chargeWhere((socket) => socket.write(httpAnswer(402, error)))
  expect(outcome).toEqual({ kind: 'declined', code: 'card_declined', declineCode: null, payment: null })
  expect(call?.errorCode).toBe('card_error')
})

test('a refused connection is not sent, also where a name stands for several addresses', async () => {
  const port = await closedPort()
  for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
    const { outcome, calls } = await connect(`http://${host}:${port}`).charge(request, patient)
    expect(outcome).toEqual({ kind: 'not_sent', reason: 'connection_refused', alert: false, retryAfterMs: null })
    expect(calls).toMatchObject([{ outcome: 'not_sent', httpStatus: null, errorCode: 'ECONNREFUSED' }])
  }
})

test('a name that does not resolve is not sent', async () => {
  const { outcome, calls } = await connect('http://stripe.invalid').charge(request, patient)
  expect(outcome).toEqual({ kind: 'not_sent', reason: 'dns_failure', alert: false, retryAfterMs: null })
  expect(calls[0]?.errorCode).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
})

test('TLS that cannot be agreed on is unknown', async () => {
  const plain = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  })
  await new Promise<void>((done) => plain.listen(0, '127.0.0.1', done))
  open.push(plain)
  const { port } = plain.address() as AddressInfo
  const { outcome } = await connect(`https://127.0.0.1:${port}`).charge(request, patient)
  expect(outcome).toMatchObject({ kind: 'unknown', reason: 'connection_lost' })
})

test('a list that never ends is left at the limit, and one that is no list is unknown', async () => {
  let count = 0
  const page = () => ({ object: 'list', has_more: true, data: [{ ...intent, id: `pi_${count++}`, metadata: {} }] })
  const endless = await serve((socket) => socket.write(httpAnswer(200, page())))
  const search = { target, metadata: request.metadata, createdFrom: new Date(), createdTo: new Date() }
  const cut = await connect(endless.url).find(search, { timeoutMs: 1500 })
  expect(cut.outcome).toEqual({ ...unknown, reason: 'timeout', worthRetrying: false })
  expect(cut.calls.length).toBeGreaterThan(1)

  const stuck = await serve((socket) => socket.write(httpAnswer(200, { object: 'list', has_more: true, data: [] })))
  const { outcome, calls } = await connect(stuck.url).find(search, patient)
  expect(outcome).toEqual({ ...unknown, reason: 'unreadable_answer', worthRetrying: false })
  expect(calls).toHaveLength(1)
})

test('a payment of ours that cannot be read is found but unknown, one of others is passed over', async () => {
  const foreign = { ...intent, id: 'pi_2', currency: 'xxx', metadata: {} }
  let data: object[] = [foreign, { ...intent, currency: 'xxx' }]
  const server = await serve((socket) => socket.write(httpAnswer(200, { object: 'list', has_more: false, data })))
  const provider = connect(server.url)
  const search = { target, metadata: request.metadata, createdFrom: new Date(), createdTo: new Date() }
  const found = await provider.find(search, patient)
  expect(found.outcome).toEqual({ ...unknown, reason: 'unreadable_answer', worthRetrying: false, intentId: 'pi_1' })

  const list = async () => {
    const ids: string[] = []
    const period = { from: new Date(0), to: new Date() }
    for await (const payment of provider.listPayments(target, period, patient)) ids.push(payment.intentId)
    return ids
  }
  await expect(list()).rejects.toThrow('pi_1 could not be read')
  data = [foreign, intent]
  expect(await list()).toEqual(['pi_1'])
})

test('the base of the API is a bare http or https address', () => {
  for (const apiBase of ['ftp://127.0.0.1', 'http://127.0.0.1/v1', 'http://127.0.0.1/proxy', '127.0.0.1']) {
    expect(() => connect(apiBase)).toThrow()
  }
})

/** Sends `text` bit by bit, so that the connection is never idle for long. */
function trickle(socket: Socket, text: string): void {
  let sent = 0
  const timer = setInterval(() => {
    if (sent >= text.length || socket.destroyed) return clearInterval(timer)
    socket.write(text.slice(sent, sent + 20))
    sent += 20
  }, 40)
  socket.on('close', () => clearInterval(timer))
}

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  await new Promise<void>((done) => server.close(() => done()))
  return port
}
