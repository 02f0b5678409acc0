/** What a client is told of an attempt: the stored answer once settled, the present state while open. */
import type { Order } from '../../domain/order.ts'
import { orderView } from '../../domain/order-view.ts'
import { Problem, problemDocument } from '../../domain/problem.ts'
import { runIdOf, runView } from '../../domain/run.ts'

export interface Answer {
  status: number
  /** Byte for byte what is sent; problem details from status 400 on. */
  body: string
  /** For Location, where something was created. */
  orderId: string | null
  /** The order that it is about, created or not: for the log alone. */
  aboutOrderId: string | null
  /** Where it is not settled yet, ms. */
  retryAfterMs: number | null
  /** It was given before, to this request or its twin. */
  replayed: boolean
}

/** The answer that an order's end gives for good. `requestId` names the request that brought it; a replay repeats it. */
export function settledAnswer(
  order: Order,
  requestId: string,
  declinedAs: 'card_declined' | 'payment_method_invalid' = 'card_declined',
): Answer {
  switch (order.status) {
    case 'paid':
    case 'authorized':
      return answer(201, shown(order), order.order_id)
    case 'payment_failed':
      return problemAnswer(
        new Problem(declinedAs, {
          detail:
            declinedAs === 'card_declined'
              ? 'The card was declined. Nothing was charged; try another card with a new key.'
              : 'The payment method cannot be used. Nothing was charged; try another one with a new key.',
          members: {
            ...(order.decline_code === null ? {} : { decline_code: order.decline_code }),
            ...named(order),
            new_key_safe: true,
          },
        }),
        requestId,
        order.order_id,
      )
    case 'canceled':
      return problemAnswer(
        new Problem(order.kind === 'run' ? 'run_closed' : 'checkout_canceled', {
          detail: `The ${order.kind} was canceled or has expired. Nothing was charged; start again with a new key.`,
          members: { ...named(order), new_key_safe: true },
        }),
        requestId,
        order.order_id,
      )
    default:
      throw new Error(`an order that is ${order.status} has not ended`)
  }
}

/** The answer while the customer or the provider has the word: the order as it stands. */
export function openAnswer(order: Order, retryAfterMs: number): Answer {
  return {
    status: 202,
    body: shown(order, { withClientSecret: true }),
    orderId: order.order_id,
    aboutOrderId: order.order_id,
    retryAfterMs,
    replayed: false,
  }
}

/** What the client has asked for: the order, or the run that it holds money for. */
function shown(order: Order, options: { withClientSecret?: boolean } = {}): string {
  return JSON.stringify(order.kind === 'run' ? runView(order) : orderView(order, options))
}

function named(order: Order): Record<string, string> {
  return { ...(order.kind === 'run' ? { run_id: runIdOf(order.order_id) } : {}), order_id: order.order_id }
}

/** A stored answer, given again. */
export function storedAnswer(stored: { status: number; body: string }, orderId: string, replayed: boolean): Answer {
  return { ...answer(stored.status, stored.body, orderId), replayed }
}

/** A problem as an answer, for what is kept or shared between twins. */
export function problemAnswer(problem: Problem, requestId: string, aboutOrderId: string): Answer {
  const retryAfterSeconds = problem.options.retryAfterSeconds
  return {
    ...answer(problem.status, JSON.stringify(problemDocument(problem, requestId)), aboutOrderId),
    retryAfterMs: retryAfterSeconds === undefined ? null : retryAfterSeconds * 1000,
  }
}

function answer(status: number, body: string, orderId: string): Answer {
  const created = status < 300 ? orderId : null
  return { status, body, orderId: created, aboutOrderId: orderId, retryAfterMs: null, replayed: false }
}
