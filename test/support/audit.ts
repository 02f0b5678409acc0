/** The judge at the end of a test: our books against their own rules and against the simulator's. */
import { expect } from 'vitest'
import { fromProviderAmount } from '../../src/domain/money.ts'
import { auditOrders, auditStock, type BookedPayment, type Finding } from '../../src/store/audit.ts'
import { auditBooks } from '../../src/store/audit-books.ts'
import type { BookedPayment as SimulatedPayment } from './books.ts'
import type { Scene } from './scene.ts'

/** The demo catalog, as seeded for both tenants. */
const demoStock = { mug: 100_000, tee: 100_000, poster: 100_000, rare: 5 }

export interface AuditOptions {
  /** What else the demo tenant had before its first order, or what a test has set anew, by SKU. */
  stock?: Record<string, number>
  /** Orders may still wait for a customer or for recovery. */
  unfinished?: true
}

/** Fails with everything that is wrong, or unfinished where that is not expected. */
export async function expectBooksInOrder(scene: Scene, options: AuditOptions = {}): Promise<void> {
  const findings = await audit(scene, options)
  expect(options.unfinished ? findings.filter(({ severity }) => severity === 'wrong') : findings).toEqual([])
}

export async function audit(scene: Scene, { stock = {} }: AuditOptions = {}): Promise<Finding[]> {
  const { pool } = scene.service.deps
  // The provider's books first: what is charged after this look is not held against ours.
  const payments = (await scene.books.payments()).map(bookedPayment)
  return [
    ...(await auditOrders(pool)),
    ...(await auditStock(pool, 'ten_demo', { ...demoStock, ...stock })),
    ...(await auditBooks(pool, payments)),
  ]
}

/** A payment of the simulator's books as an audit takes it. */
export function bookedPayment(payment: SimulatedPayment): BookedPayment {
  const currency = payment.currency.toUpperCase()
  const ours = (amount: number) => fromProviderAmount(amount, currency)
  const refunds = payment.refunds.filter(({ status }) => status === 'succeeded' || status === 'pending')
  return {
    intentId: payment.id,
    status: payment.status,
    amount: ours(payment.amount),
    amountCaptured: ours(payment.amount_received),
    amountCapturable: ours(payment.amount_capturable),
    amountRefunded: ours(refunds.reduce((sum, { amount }) => sum + amount, 0)),
    currency,
    metadata: payment.metadata,
  }
}
