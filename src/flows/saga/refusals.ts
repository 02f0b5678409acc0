/** Claims that were refused before any effect, as problems. */
import { currency } from '../../domain/currencies.ts'
import { Problem } from '../../domain/problem.ts'
import type { Claim } from '../../store/attempts.ts'

/** Nothing is stored: the key is free, and another one is as good. */
export function refuseClaim(claim: Extract<Claim, { kind: 'refused' }>): never {
  throw new Problem(claim.code, {
    detail: details[claim.code]?.(claim.detail),
    members: { ...claim.detail, new_key_safe: true },
  } as ConstructorParameters<typeof Problem>[1])
}

const details: Partial<Record<string, (detail: Record<string, unknown>) => string>> = {
  out_of_stock: () => 'Not enough of these products is left.',
  price_changed: (detail) => `The total is now ${detail.total}, not ${detail.expected_total}.`,
  unknown_sku: (detail) => `Unknown: ${(detail.skus as string[]).join(', ')}.`,
  currency_mismatch: () => 'All products and the requested currency must have one currency.',
  amount_not_chargeable: (detail) => `A total of ${detail.total} ${detail.currency} cannot be charged.`,
}

/** The cart belongs to another attempt, which decides whether a new key is safe: it is not. */
export function refuseCartTaken({ order, attemptState }: Extract<Claim, { kind: 'cart_taken' }>): never {
  const paid = order.status === 'paid' || order.status === 'authorized'
  throw new Problem(paid ? 'cart_already_paid' : 'cart_in_progress', {
    detail: paid
      ? 'Another attempt has paid for this cart.'
      : 'Another attempt is paying for this cart. Repeat that one with its own key, or cancel it.',
    members: {
      order_id: order.order_id,
      state: attemptStateShown(attemptState),
      order_status: order.status,
      new_key_safe: false,
    },
  })
}

/** The provider takes amounts of some currencies in steps only. `amount`: minor units; `done`: what is done with it.
 * Throws `amount_not_chargeable`. */
export function refuseOffStep(code: string, amount: number, done: 'sold' | 'captured' | 'refunded'): void {
  const step = currency(code)?.step ?? 1
  if (amount % step === 0) return
  throw new Problem('amount_not_chargeable', {
    detail: `${code} is ${done} in steps of ${step} minor units.`,
    members: { step },
  })
}

/** Nothing is stored by the request, but an earlier one may have used the key. */
export function overloaded(reason: string): Problem {
  return new Problem('overloaded', {
    detail: `${reason} Repeat the request with the same key.`,
    members: { new_key_safe: false },
    retryAfterSeconds: 2,
  })
}

/** The words of `GET /checkouts/{key}`. */
export function attemptStateShown(
  state: 'running' | 'resumable' | 'open' | 'settled',
): 'in_progress' | 'open' | 'settled' {
  return state === 'running' ? 'in_progress' : state === 'resumable' ? 'open' : state
}
