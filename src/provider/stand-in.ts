/** What the demo shop asks of the simulator beside charging: to play the customer's bank, to misbehave, to show its books. */

/** `answer_lost`: it has its effect and the answer never arrives. `unreachable`: it surely has none. `slow`: a few seconds. */
type Mishap = 'answer_lost' | 'unreachable' | 'slow'

export interface StandIn {
  /** The customer approves or refuses what their bank asks. False where it does not ask, or no longer. */
  answerBank(payment: string, outcome: 'approve' | 'refuse'): Promise<boolean>
  /** Befalls the next charge, in place of what was to befall it; null: nothing does. */
  prepareMishap(mishap: Mishap | null): Promise<void>
  /** Every payment in its books that was made for this attempt. Amounts in the provider's minor units. */
  paymentsFor(tenantId: string, key: string): Promise<BookedPayment[]>
}

interface BookedPayment {
  id: string
  status: string
  amount_received: number
  currency: string
}

const charging = { method: 'POST', path: '/v1/payment_intents', times: 1 }
const mishaps = {
  // A stored failure: sending again only repeats it, so the order has to be looked up.
  answer_lost: { ...charging, fault: 'error_after' },
  unreachable: { ...charging, fault: 'rate_limit' },
  slow: { ...charging, fault: 'latency', latency_ms: 4000 },
}

/** Of the simulator that listens at `url`. Its calls reject where that cannot be reached. */
export function createStandIn(url: string): StandIn {
  const control = (method: string, path: string, body?: unknown) =>
    fetch(`${url}/_sim${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(5000),
    })
  return {
    async answerBank(payment, outcome) {
      const action = { outcome: outcome === 'approve' ? 'succeed' : 'fail' }
      return (await control('POST', `/payment_intents/${encodeURIComponent(payment)}/action`, action)).ok
    },
    async prepareMishap(mishap) {
      await done(control('DELETE', '/faults'))
      if (mishap !== null) await done(control('POST', '/faults', { rules: [mishaps[mishap]] }))
    },
    async paymentsFor(tenantId, key) {
      const { data } = (await (await done(control('GET', '/payment_intents'))).json()) as {
        data: (BookedPayment & { metadata: { tenant?: string; key?: string } })[]
      }
      return data
        .filter(({ metadata }) => metadata.tenant === tenantId && metadata.key === key)
        .map(({ id, status, amount_received, currency }) => ({ id, status, amount_received, currency }))
    },
  }
}

async function done(call: Promise<Response>): Promise<Response> {
  const response = await call
  if (!response.ok) throw new Error(`the simulator refuses its control: ${response.status}`)
  return response
}
