/** The judge at the end of a test: our books against their own rules and against the simulator's. */
import { expect } from 'vitest'
import { auditOrders, auditStock, type Finding } from '../../src/store/audit.ts'
import { auditBooks } from '../../src/store/audit-books.ts'
import { bookedPayment } from './booked-payment.ts'
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
