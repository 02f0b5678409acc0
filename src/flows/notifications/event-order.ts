/**
 * Which order an event is about. Our metadata on the payment tells, and charges and refunds of ours carry it too. What
 * was made in the provider's dashboard, and disputes, name only the payment; then the provider is asked for that. An event
 * that names another payment than the order's is never taken at its word either.
 */
import type { Deps } from '../../deps.ts'
import { isId } from '../../domain/ids.ts'
import type { Order } from '../../domain/order.ts'
import {
  type PaymentOutcome,
  type ProviderCall,
  type ProviderIdentity,
  type ProviderPayment,
  ProviderUnavailable,
} from '../../provider/port.ts'
import type { StoredEvent } from '../../store/inbox.ts'
import { readOrder } from '../../store/orders.ts'
import { JobFailure } from '../jobs/job-run.ts'
import { ask, type Deadline } from '../saga/provider-calls.ts'

/** The payment as the provider has it now, and the calls that told. */
export interface Told {
  outcome: Extract<PaymentOutcome, { payment: ProviderPayment }>
  calls: readonly ProviderCall[]
}

export type Found =
  /** `told` where the event names a payment that the order does not know yet. */
  | { kind: 'ours'; order: Order; told: Told | null }
  | { kind: 'foreign'; reason: string }
  /** It names this order, but the payment that it is about is another's. */
  | { kind: 'mismatched'; order: Order; reason: string }

/** Throws `JobFailure` while the provider has to be asked and does not answer. */
export async function findOrder(deps: Deps, event: StoredEvent, deadline: Deadline): Promise<Found> {
  const identity = await identityOf(deps)
  const named = await orderNamed(deps, event.tenant_id ?? undefined, event.order_id ?? undefined)
  if (named === null) {
    if (event.order_id !== null) return { kind: 'foreign', reason: 'order_unknown' }
    if (carriesMetadata(event)) return { kind: 'foreign', reason: 'not_ours' }
  } else {
    const wrong = wrongAccount(event, named, identity)
    if (wrong !== null) return { kind: 'foreign', reason: wrong }
    if (event.intent_id !== null && event.intent_id === named.intent_id)
      return { kind: 'ours', order: named, told: null }
  }

  if (event.livemode !== identity.livemode) return { kind: 'foreign', reason: 'other_mode' }
  const told = await askAbout(deps, event, identity, deadline)
  if ('absent' in told) return { kind: 'foreign', reason: told.absent }
  const { tenant, order } = told.outcome.payment.metadata
  if (named !== null) {
    return tenant === named.tenant_id && order === named.order_id
      ? { kind: 'ours', order: named, told }
      : { kind: 'mismatched', order: named, reason: 'payment_of_another' }
  }
  const owner = await orderNamed(deps, tenant, order)
  if (owner === null) return { kind: 'foreign', reason: order === undefined ? 'not_ours' : 'order_unknown' }
  const wrong = wrongAccount(event, owner, identity)
  return wrong === null ? { kind: 'ours', order: owner, told } : { kind: 'foreign', reason: wrong }
}

/** Reads the payment that an event names. Throws `JobFailure` while that brings no answer. */
export async function askAboutPayment(deps: Deps, event: StoredEvent, deadline: Deadline): Promise<Told> {
  const told = await askAbout(deps, event, await identityOf(deps), deadline)
  if ('absent' in told) throw new JobFailure(told.absent)
  return told
}

async function askAbout(
  deps: Deps,
  event: StoredEvent,
  identity: ProviderIdentity,
  deadline: Deadline,
): Promise<Told | { absent: string }> {
  const intentId = event.intent_id
  if (intentId === null) return { absent: 'no_payment' }
  const target = {
    connectedAccount: event.account,
    account: event.account ?? identity.account,
    livemode: event.livemode,
    apiVersion: deps.provider.versions.api,
  }
  const { outcome, calls } = await ask(deps, deadline, (limits) => deps.provider.retrieve(target, intentId, limits))
  switch (outcome.kind) {
    case 'absent':
      return { absent: 'payment_unknown' }
    case 'not_sent':
      throw new JobFailure('not_reached')
    case 'unknown':
      // In a form or currency of which we make no payments.
      if (outcome.reason === 'unreadable_answer' && event.order_id === null) return { absent: 'unreadable' }
      throw new JobFailure(outcome.reason)
    case 'declined':
      throw new JobFailure('unexpected_answer')
    default:
      return { outcome, calls }
  }
}

async function orderNamed(
  deps: Deps,
  tenantId: string | undefined,
  orderId: string | undefined,
): Promise<Order | null> {
  if (tenantId === undefined || orderId === undefined || !isId('ord', orderId)) return null
  return readOrder(deps.db, tenantId, orderId)
}

/** A payment and its charge carry what we wrote on them. */
function carriesMetadata(event: StoredEvent): boolean {
  return event.readable && (event.object === 'payment_intent' || event.object === 'charge')
}

function wrongAccount(event: StoredEvent, order: Order, identity: ProviderIdentity): string | null {
  if (event.livemode !== order.livemode) return 'other_mode'
  if (event.account !== order.connected_account) return 'other_account'
  return (event.account ?? identity.account) === order.provider_account ? null : 'other_account'
}

async function identityOf(deps: Deps): Promise<ProviderIdentity> {
  try {
    return await deps.provider.identity()
  } catch (error) {
    if (error instanceof ProviderUnavailable) throw new JobFailure('not_reached')
    throw error
  }
}
