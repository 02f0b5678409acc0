import { type ChildProcess, spawn } from 'node:child_process'
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { startSimulator } from '../../src/simulator/server.ts'
import { inbox } from './inbox.ts'
import { books, client, control, payment, refusal, simulator, until, webhookSecret } from './support.ts'

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'simulator-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** The simulator as a process of its own, on a free port. */
async function spawned(
  env: Record<string, string>,
  stdin: 'ignore' | 'pipe' = 'ignore',
): Promise<{ port: number; url: string; child: ChildProcess }> {
  const child = spawn(process.execPath, ['src/simulator/main.ts'], {
    env: { SIM_PORT: '0', PATH: process.env.PATH, ...env },
    stdio: [stdin, 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  if (child.stdout === null) throw new Error('the process has no output')
  for await (const line of createInterface({ input: child.stdout })) {
    const { url } = JSON.parse(line) as { url?: string }
    if (url !== undefined) return { port: Number(new URL(url).port), url, child }
  }
  throw new Error('the simulator ended before it listened')
}

const ended = (child: ChildProcess) => new Promise<number | null>((resolve) => child.once('exit', resolve))

test('a killed simulator comes back with the same books, keys and events', async () => {
  const DATA_DIR = await folder()
  const first = await spawned({ DATA_DIR })
  const stripe = client(first.port)
  const paid = await stripe.paymentIntents.create(payment({ metadata: { order: 'ord_1' } }), { idempotencyKey: 'k1' })
  await stripe.refunds.create({ payment_intent: paid.id, amount: 250 }, { idempotencyKey: 'r1' })
  const held = await stripe.paymentIntents.create(payment({ capture_method: 'manual' }))
  await control(first, 'POST', '/disputes', { payment_intent: paid.id, amount: 100 })
  await refusal(
    stripe.paymentIntents.create(payment({ payment_method: 'pm_card_chargeDeclined' }), { idempotencyKey: 'd1' }),
  )
  await control(first, 'POST', '/faults', { rules: [{ method: 'POST', path: '/v1', fault: 'error_after', times: 1 }] })
  await refusal(stripe.paymentIntents.create(payment(), { idempotencyKey: 'e1' }))
  const before = await books(first)
  const eventsBefore = (await stripe.events.list({ limit: 100 })).data
  first.child.kill('SIGKILL')
  await ended(first.child)

  const second = await spawned({ DATA_DIR })
  const again = client(second.port)
  expect(await books(second)).toEqual(before)
  expect((await again.events.list({ limit: 100 })).data).toEqual(eventsBefore)
  const replay = await again.paymentIntents.create(payment({ metadata: { order: 'ord_1' } }), { idempotencyKey: 'k1' })
  expect(replay).toMatchObject({ id: paid.id, status: 'succeeded' })
  expect(replay.lastResponse.headers['idempotent-replayed']).toBe('true')
  expect(await refusal(again.paymentIntents.create(payment(), { idempotencyKey: 'k1' }))).toMatchObject({
    rawType: 'idempotency_error',
  })
  expect(await refusal(again.paymentIntents.create(payment(), { idempotencyKey: 'e1' }))).toMatchObject({
    statusCode: 500,
  })
  const declined = payment({ payment_method: 'pm_card_chargeDeclined' })
  expect(await refusal(again.paymentIntents.create(declined, { idempotencyKey: 'd1' }))).toMatchObject({
    statusCode: 402,
  })
  const counts = (await books(second)).flatMap(({ requests }) => requests ?? [])
  expect(counts, 'requests with the key of each payment, those before the kill included').toEqual([3, 1, 2, 2])
  expect(await again.paymentIntents.capture(held.id)).toMatchObject({ status: 'succeeded' })
  expect(await books(second)).toHaveLength(before.length)
})

test('a killed simulator has booked every payment that it answered, and no half of one', async () => {
  const DATA_DIR = await folder()
  const first = await spawned({ DATA_DIR })
  const stripe = client(first.port)
  const answered: string[] = []
  const payers = Array.from({ length: 20 }, async (_, payer) => {
    for (let at = 0; at < 1000; at++) {
      const paid = await stripe.paymentIntents
        .create(payment(), { idempotencyKey: `k${payer}-${at}` })
        .catch(() => undefined)
      if (paid === undefined) return
      answered.push(paid.id)
    }
  })
  await until('a hundred are paid', () => (answered.length > 100 ? true : undefined))
  first.child.kill('SIGKILL')
  await Promise.all(payers)
  const second = await spawned({ DATA_DIR })
  const booked = await books(second)
  expect(booked.map(({ id }) => id)).toEqual(expect.arrayContaining(answered))
  expect(booked.filter(({ status, charges }) => status !== 'succeeded' || charges.length !== 1)).toEqual([])
  expect(new Set(booked.map(({ idempotency_key }) => idempotency_key)).size).toBe(booked.length)
})

test('notifications that were pending are delivered after a kill', async () => {
  const DATA_DIR = await folder()
  const gone = await inbox()
  await gone.close()
  const first = await spawned({ DATA_DIR, WEBHOOK_URL: gone.url })
  const paid = await client(first.port).paymentIntents.create(payment())
  first.child.kill('SIGKILL')
  await ended(first.child)
  const back = await inbox(undefined, gone.port)
  await spawned({ DATA_DIR, WEBHOOK_URL: gone.url, STRIPE_WEBHOOK_SECRET: 'whsec_new, whsec_old' })
  await until('all three have arrived', () => (back.received.length === 3 ? true : undefined))
  const stripe = client(first.port)
  for (const { body, headers } of back.received) {
    stripe.webhooks.constructEvent(body, String(headers['stripe-signature']), 'whsec_new')
  }
  expect(JSON.stringify(back.received)).toContain(paid.id)
})

test('what was delivered is not delivered again after a restart', async () => {
  const stateFile = join(await folder(), 'simulator.jsonl')
  const box = await inbox()
  const options = { port: 0, webhookSecret, webhookUrl: box.url, stateFile }
  const first = await startSimulator(options)
  await client(first.port).paymentIntents.create(payment())
  await until('all are delivered', async () => {
    const { data } = (await control(first, 'GET', '/events')).body
    return data.every((event) => event.pending_webhooks === 0) ? true : undefined
  })
  await first.close()
  const second = await simulator(options)
  const { data } = await client(second.port).events.list()
  expect(data.map((event) => event.pending_webhooks)).toEqual([0, 0, 0])
  await client(second.port).paymentIntents.create(payment())
  await until('the new ones have arrived', () => (box.received.length >= 6 ? true : undefined))
  expect(new Set(box.received.map(({ event }) => event.id)).size).toBe(6)
})

test('what was due while it was away happens after a restart', async () => {
  const stateFile = join(await folder(), 'simulator.jsonl')
  const options = { port: 0, webhookSecret, stateFile, settleDelayMs: 100, holdLifetimeMs: 1000 }
  const first = await startSimulator(options)
  const stripe = client(first.port)
  const refunded = await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_pendingRefund' }))
  await stripe.refunds.create({ payment_intent: refunded.id })
  await stripe.paymentIntents.create(payment({ payment_method: 'pm_card_createDispute' }))
  await stripe.paymentIntents.create(payment({ capture_method: 'manual' }))
  await first.close()
  const second = await simulator(options)
  await until('all three are settled', async () => {
    const [one, two, three] = await books(second)
    const settled =
      one?.refunds[0]?.status === 'succeeded' && two?.disputes.length === 1 && three?.status === 'canceled'
    return settled ? true : undefined
  })
})

test('a line torn by a kill is dropped, a damaged file is refused', async () => {
  const stateFile = join(await folder(), 'simulator.jsonl')
  const first = await startSimulator({ port: 0, webhookSecret, stateFile })
  const paid = await client(first.port).paymentIntents.create(payment())
  await first.close()
  await appendFile(stateFile, '{"records":[{"object":"payment_int')
  const second = await startSimulator({ port: 0, webhookSecret, stateFile })
  expect(await books(second)).toMatchObject([{ id: paid.id }])
  await second.close()
  await appendFile(stateFile, 'damaged\n{}\n')
  await expect(startSimulator({ port: 0, webhookSecret, stateFile })).rejects.toThrow(/line \d+ is not readable/)
})

test('a reset empties the books, also for the next start', async () => {
  const stateFile = join(await folder(), 'simulator.jsonl')
  const first = await startSimulator({ port: 0, webhookSecret, stateFile })
  const stripe = client(first.port)
  const key = { idempotencyKey: 'k1' }
  const paid = await stripe.paymentIntents.create(payment(), key)
  await control(first, 'POST', '/faults', { rules: [{ method: '*', path: '/', fault: 'hang' }] })
  expect((await control(first, 'POST', '/reset')).status).toBe(200)
  expect(await readFile(stateFile, 'utf8')).toBe('')
  expect(await books(first)).toEqual([])
  expect((await stripe.events.list()).data).toEqual([])
  const fresh = await stripe.paymentIntents.create(payment(), key)
  expect(fresh.id).not.toBe(paid.id)
  await first.close()
  const second = await simulator({ stateFile })
  expect(await books(second)).toMatchObject([{ id: fresh.id }])
})

test('a request from before a reset has no effect after it', async () => {
  const sim = await simulator()
  const rules = [{ method: 'POST', path: '/v1', fault: 'latency', latency_ms: 500 }]
  await control(sim, 'POST', '/faults', { rules })
  const stripe = client(sim.port, 'sk_test_demo', { timeout: 5000 })
  const slow = refusal(stripe.paymentIntents.create(payment(), { idempotencyKey: 'k1' }))
  await until('it is waiting', async () => (await control(sim, 'GET', '/requests')).body.data[0])
  await control(sim, 'POST', '/reset')
  await control(sim, 'POST', '/faults', { rules: [{ method: 'POST', path: '/v1', fault: 'drop_before' }] })
  expect(await slow).toMatchObject({ type: 'StripeConnectionError' })
  expect(await books(sim)).toEqual([])
})

test('SIGTERM ends the process cleanly', async () => {
  const { child, port } = await spawned({ DATA_DIR: await folder() })
  await client(port).paymentIntents.create(payment())
  const exit = ended(child)
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
})

test('where it is told so, the process ends with its stdin', async () => {
  const { child } = await spawned({ DATA_DIR: await folder(), STOP_WITH_STDIN: 'true' }, 'pipe')
  const exit = ended(child)
  child.stdin?.end()
  expect(await exit).toBe(0)
})

test('where it holds its stdin, SIGTERM ends the process all the same', async () => {
  const { child } = await spawned({ DATA_DIR: await folder(), STOP_WITH_STDIN: 'true' }, 'pipe')
  const exit = ended(child)
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
})

test.each([
  [{ SIM_PORT: 'http' }, 'SIM_PORT'],
  [{ WEBHOOK_URL: 'localhost:3000' }, 'WEBHOOK_URL'],
  [{ STRIPE_WEBHOOK_SECRET: ' ,whsec_old' }, 'STRIPE_WEBHOOK_SECRET'],
])('it does not start with %j, and says why', async (env, name) => {
  const child = spawn(process.execPath, ['src/simulator/main.ts'], {
    env: { SIM_PORT: '0', DATA_DIR: await folder(), PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  expect(await ended(child)).toBe(1)
  expect(output).toContain(name)
})

test('a second simulator on the same port leaves the books alone', async () => {
  const stateFile = join(await folder(), 'simulator.jsonl')
  const first = await simulator({ stateFile })
  const stripe = client(first.port)
  await stripe.paymentIntents.create(payment())
  await expect(startSimulator({ port: first.port, webhookSecret, stateFile })).rejects.toThrow(/EADDRINUSE/)
  const later = await stripe.paymentIntents.create(payment())
  expect(await readFile(stateFile, 'utf8')).toContain(later.id)
})
