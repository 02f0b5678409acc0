/** The simulator's control calls: how it misbehaves, and its books. */
import type { BookedPayment } from '../../src/store/audit.ts'
import { bookedPayment } from '../../test/support/booked-payment.ts'

export interface FaultRule {
  method: string
  path: string
  fault: string
  probability?: number
  latency_ms?: number
}

interface SimulatedPayment {
  id: string
  status: string
  amount: number
  amount_received: number
  amount_capturable: number
  currency: string
  idempotency_key: string | null
  requests: number | null
  metadata: { tenant?: string; order?: string; key?: string }
  refunds: { amount: number; status: string }[]
}

/** Replaces the rules that are in force. */
export async function setFaults(simulatorUrl: string, rules: readonly FaultRule[], seed?: number): Promise<void> {
  await call(simulatorUrl, 'DELETE', '/_sim/faults')
  if (rules.length > 0) {
    await call(simulatorUrl, 'POST', '/_sim/faults', { rules, ...(seed === undefined ? {} : { seed }) })
  }
}

/** How notifications misbehave; nothing for well-behaved ones. */
export async function setWebhooks(
  simulatorUrl: string,
  how: { delay_ms?: number; duplicates?: number; shuffle?: boolean; drop?: number; seed?: number } = {},
): Promise<void> {
  await call(simulatorUrl, 'PUT', '/_sim/webhooks', how)
}

/** Every payment, in our minor units, read piece by piece: there may be many. */
export async function* bookedPayments(simulatorUrl: string): AsyncGenerator<BookedPayment> {
  for await (const payment of simulatedPayments(simulatorUrl)) yield bookedPayment(payment)
}

/** The simulator's own words about the payments of one order. */
export async function paymentsOfOrder(simulatorUrl: string, orderId: string): Promise<SimulatedPayment[]> {
  const found: SimulatedPayment[] = []
  for await (const payment of simulatedPayments(simulatorUrl)) {
    if (payment.metadata.order === orderId) found.push(payment)
  }
  return found
}

/** The list comes with a payment on each line. */
async function* simulatedPayments(simulatorUrl: string): AsyncGenerator<SimulatedPayment> {
  const response = await call(simulatorUrl, 'GET', '/_sim/payment_intents')
  if (response.body === null) throw new Error('the simulator has answered without its books')
  let rest = ''
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(bare(line)) as SimulatedPayment
  }
  const last = bare(rest).replace(/\]\}$/, '')
  if (last !== '') yield JSON.parse(last) as SimulatedPayment
}

function bare(line: string): string {
  return line.replace(/^\{"data":\[/, '').replace(/,$/, '')
}

async function call(simulatorUrl: string, method: string, path: string, body?: unknown): Promise<Response> {
  const response = await fetch(simulatorUrl + path, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`the simulator refused ${method} ${path}: ${await response.text()}`)
  return response
}
