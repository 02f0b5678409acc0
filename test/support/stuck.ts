/** Orders that need a person, and how they came to that. */
import { expect } from 'vitest'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { makeDue, orderOf } from './aging.ts'
import { cart } from './client.ts'
import { putOffAsking } from './deaths.ts'
import { payAtProvider } from './notifications.ts'
import { newKey, type Scene } from './scene.ts'

export interface Stuck {
  id: string
  key: string
}

/** The charge has happened, its answer was lost, and nobody has looked yet. */
export async function chargedInDoubt(scene: Scene, overrides: Record<string, unknown> = {}): Promise<Stuck> {
  return inDoubt(scene, 'error_after', overrides)
}

/** The charge has never arrived, and nobody knows that. */
export async function neverArrived(scene: Scene, overrides: Record<string, unknown> = {}): Promise<Stuck> {
  return inDoubt(scene, 'error_before', overrides)
}

async function inDoubt(scene: Scene, fault: 'error_after' | 'error_before', overrides: Record<string, unknown>) {
  const key = newKey()
  await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault, times: 10 })
  const { status, json } = await scene.shop.checkout(key, cart(overrides))
  await scene.books.noFaults()
  expect([status, json.status]).toEqual([202, 'needs_reconcile'])
  // A failure that was stored under the key at the provider may be replayed for good: only looking up helps.
  await scene.db.updateTable('orders').set({ send_is_pointless: true }).where('order_id', '=', json.id).execute()
  return { id: json.id, key }
}

/** The customer has to act. */
export async function waitsForCustomer(scene: Scene): Promise<Stuck & { intent: string }> {
  const key = newKey()
  const { status, json } = await scene.shop.checkout(key, cart({ payment_method: 'pm_card_threeDSecure2Required' }))
  expect([status, json.status]).toEqual([202, 'requires_action'])
  return { id: json.id, key, intent: json.payment.reference }
}

/** The provider has another amount for it than was asked for, and recovery has booked that to suspense. */
export async function mismatched(
  scene: Scene,
  amount: number,
  overrides: Record<string, unknown> = {},
): Promise<Stuck & { intent: string }> {
  const stuck = await neverArrived(scene, overrides)
  const intent = await payAtProvider(scene, stuck, amount)
  // Others that have come due meanwhile stay as they are.
  await putOffAsking(scene)
  await makeDue(scene.db, stuck.key)
  await recoverOrders(scene.service.deps)
  expect(await orderOf(scene.db, stuck.key)).toMatchObject({
    status: 'needs_reconcile',
    reconcile_reason: 'amount_mismatch',
  })
  return { ...stuck, intent }
}
