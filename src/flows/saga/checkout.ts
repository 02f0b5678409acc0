/**
 * The checkout saga: one order and one charge per attempt, whatever repeats the request.
 *
 *   claim    key + cart + pending order + reserved stock       one transaction, committed before the charge
 *   charge   at the provider, with the same identity           no transaction, no connection
 *   settle   order + ledger + outbox + stored answer           one transaction
 *   answer
 *
 * What dies in between is driven on by a repeat or by the recovery worker, through the same `settle`.
 */
import { randomUUID } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import type { RequestDigest } from '../../domain/digest.ts'
import { newId } from '../../domain/ids.ts'
import { isOpen, type Order } from '../../domain/order.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import type { ClaimItem } from '../../store/attempts.ts'
import type { Answer } from './answers.ts'
import { type AttemptRequest, type CheckoutRequest, digestWith } from './checkout-request.ts'
import { charge, deadlineFor } from './provider-calls.ts'
import { configuredTarget } from './provider-target.ts'
import { refuseCartTaken, refuseClaim } from './refusals.ts'
import { answerRepeat } from './repeat.ts'
import { attemptId } from './replay-cache.ts'
import { settle } from './settlement.ts'

/** Throws a `Problem` where the attempt is refused; nothing is stored then and the key is free, or says what stands there. */
export function checkout(deps: Deps, request: CheckoutRequest): Promise<Answer> {
  const { body } = request
  return chargeOnce(deps, request, {
    kind: 'checkout',
    email: body.customer.email,
    ...(body.customer.name === undefined ? {} : { name: body.customer.name }),
    items: body.items,
    ...(body.currency === undefined ? {} : { currency: body.currency }),
    ...(body.expected_total === undefined ? {} : { expectedTotal: body.expected_total }),
    capture: body.capture ?? 'automatic',
    ...(body.cart_id === undefined ? {} : { cartId: body.cart_id }),
    paymentMethod: body.payment_method,
    ...(body.shipping_address === undefined ? {} : { shippingAddress: body.shipping_address }),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata }),
  })
}

/** The saga, for an order of any kind. */
export async function chargeOnce(deps: Deps, request: AttemptRequest, asked: OrderAsked): Promise<Answer> {
  const digest = digestWith(deps.digests.newest, request)
  const id = attemptId(request)
  const replay = deps.replays.get(id, digest)
  if (replay !== undefined) return replay
  const same = { digest: digest.digest, fingerprint: request.fingerprint }
  return deps.twins.join(id, same, deps.config.idempotencyWaitMs, () =>
    deps.admission.admit(request.tenantId, request.address, () => attempt(deps, request, asked, digest)),
  )
}

async function attempt(deps: Deps, request: AttemptRequest, asked: OrderAsked, digest: RequestDigest): Promise<Answer> {
  const startedMs = performance.now()
  const item = await claimItem(deps, request, asked, digest)
  for (;;) {
    const claim = await deps.claim(item)
    switch (claim.kind) {
      case 'claimed':
        await checkpoint('checkout.claimed')
        return chargeAndSettle(deps, request, claim.order, item, startedMs)
      case 'known': {
        const answer = await answerRepeat(deps, request, claim.attempt, startedMs)
        if (answer !== 'claim_again') return answer
        break
      }
      case 'refused':
        return refuseClaim(claim)
      case 'cart_taken':
        return refuseCartTaken(claim)
      case 'again':
        break
    }
  }
}

/** The second half of the saga, under the lease of the claim. */
async function chargeAndSettle(
  deps: Deps,
  request: AttemptRequest,
  order: Order,
  { leaseToken, digest }: ClaimItem,
  startedMs: number,
): Promise<Answer> {
  const { outcome, calls } = await charge(deps, order, deadlineFor(deps, startedMs))
  await checkpoint('checkout.charged')
  const settled = await settle(deps, order, outcome, { cause: 'answer', actor: request.requestId, calls, leaseToken })
  if (settled.applied && !isOpen(settled.order.status)) {
    deps.replays.keep(request, digest, settled.answer, 0)
  }
  return settled.answer
}

/** What a request says of the order that it wants. */
type OrderAsked = Pick<
  ClaimItem,
  | 'kind'
  | 'email'
  | 'name'
  | 'items'
  | 'currency'
  | 'expectedTotal'
  | 'fixedTotal'
  | 'capture'
  | 'cartId'
  | 'paymentMethod'
  | 'shippingAddress'
  | 'metadata'
>

async function claimItem(
  deps: Deps,
  request: AttemptRequest,
  asked: OrderAsked,
  digest: RequestDigest,
): Promise<ClaimItem> {
  return {
    ...asked,
    tenantId: request.tenantId,
    key: request.key,
    orderId: newId('ord'),
    customerId: newId('cus'),
    leaseToken: randomUUID(),
    digest,
    target: await configuredTarget(deps, request.connectedAccount),
    parameterVersion: deps.provider.versions.parameters,
  }
}
