/**
 * Metered work, as for a language model: nobody knows its price before it is done.
 *
 *   hold       an order of a fixed amount, captured by hand and taken off-session, through the saga of a checkout
 *   usage      lines of quantities, each priced when it is recorded      (see usage.ts)
 *   end        capture what was used, at most the hold; once             (see run-end.ts)
 */
import type { Deps } from '../../deps.ts'
import type { Answer } from '../saga/answers.ts'
import { chargeOnce } from '../saga/checkout.ts'
import type { AttemptRequest } from '../saga/checkout-request.ts'

interface RunRequest extends AttemptRequest {
  body: RunBody
}

/** As the API takes it; the schema beside the route has checked it. */
export interface RunBody {
  customer: { email: string; name?: string }
  payment_method: string
  currency: string
  /** Minor units. */
  hold_amount: number
}

/** Places the hold. At most one per key, like a checkout's charge; the answer shows the run. Throws a `Problem` likewise. */
export function startRun(deps: Deps, request: RunRequest): Promise<Answer> {
  const { body } = request
  return chargeOnce(deps, request, {
    kind: 'run',
    email: body.customer.email,
    ...(body.customer.name === undefined ? {} : { name: body.customer.name }),
    items: [],
    currency: body.currency,
    fixedTotal: body.hold_amount,
    capture: 'manual',
    paymentMethod: body.payment_method,
  })
}
