/** A provider that answers every charge at once, so that a benchmark measures the service and its database alone. */
import type { PaymentProvider, ProviderPayment } from '../../src/provider/port.ts'

let made = 0

export function instantProvider(delayMs = 0): PaymentProvider {
  const refuse = () => {
    throw new Error('the benchmark only charges')
  }
  return {
    versions: { api: 'benchmark', parameters: 1 },
    identity: async () => ({ account: 'acct_benchmark', livemode: false }),
    async charge(request) {
      const startedAt = new Date()
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
      made += 1
      const payment: ProviderPayment = {
        intentId: `pi_benchmark_${process.pid}_${made}`,
        chargeId: `ch_benchmark_${process.pid}_${made}`,
        status: 'succeeded',
        amount: request.amount,
        amountCaptured: request.amount,
        amountCapturable: 0,
        amountRefunded: 0,
        currency: request.currency,
        livemode: false,
        createdAt: startedAt,
        captureBefore: null,
        clientSecret: null,
        declineCode: null,
        metadata: request.metadata,
      }
      return {
        outcome: { kind: 'succeeded', payment },
        calls: [
          {
            operation: 'payment.create',
            requestId: `req_benchmark_${made}`,
            outcome: 'succeeded',
            httpStatus: 200,
            errorCode: null,
            durationMs: delayMs,
            replayed: false,
            startedAt,
          },
        ],
      }
    },
    retrieve: refuse,
    find: refuse,
    cancel: refuse,
    capture: refuse,
    refund: refuse,
    retrieveRefund: refuse,
    listRefunds: refuse,
    listDisputes: refuse,
    listPayments: refuse,
  }
}
