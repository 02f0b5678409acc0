/**
 * What a client and an auditor may expect of the service, by its contract alone: no SQL, no flow, no clock. It does not
 * foretell an answer (that depends on faults and races); it says of every answer whether it may be given, and remembers
 * what the answer promises.
 */
import type { BookedPayment } from '../support/books.ts'
import type { Reply } from '../support/client.ts'

/** A request body, and what can become of it. */
export interface Variant {
  name: string
  body: Record<string, unknown>
  /** Minor units. */
  total: number
  card: 'good' | 'declined' | 'asks' | 'slow'
  hold?: true
  cart?: string
  /** Its product can be sold out. */
  scarce?: true
}

/** What the surroundings have done to an attempt so far. */
interface Attempt {
  /** The request that made the order, once an answer has told. */
  owner?: Variant
  orderId?: string
  /** The answer that was given for good. */
  end?: { status: number; text: string }
  gaveUp: boolean
  /** What a person has asked it to be. */
  decided: Set<'paid' | 'payment_failed' | 'canceled'>
  /** The shop captures or lets go. */
  holdEnds: boolean
  /** Minor units, more where the rest was asked for; what has gone back is at most this. */
  refundsAsked: number
  acted: Set<'succeed' | 'fail'>
  timePassed: boolean
  /** A fault or a crash may have met it. */
  disturbed: boolean
}

/** A rule of the contract that an answer or the provider's books have broken. */
export class Violation extends Error {
  override name = 'Violation'
}

export interface Situation {
  /** Faults are on, or a crash was struck: answers may be lost, or 503. */
  disturbed: boolean
  /** A crash was struck during this step: a 500 is its trace. */
  crashed: boolean
  /** Other requests were under way. */
  alone: boolean
}

export class Model {
  readonly #attempts = new Map<string, Attempt>()

  attempt(key: string): Attempt {
    let attempt = this.#attempts.get(key)
    if (attempt === undefined) {
      attempt = {
        gaveUp: false,
        decided: new Set(),
        holdEnds: false,
        refundsAsked: 0,
        acted: new Set(),
        timePassed: false,
        disturbed: false,
      }
      this.#attempts.set(key, attempt)
    }
    return attempt
  }

  attempts(): IterableIterator<[string, Attempt]> {
    return this.#attempts.entries()
  }

  timePasses(): void {
    for (const attempt of this.#attempts.values()) attempt.timePassed = true
  }

  disturb(): void {
    for (const attempt of this.#attempts.values()) attempt.disturbed = true
  }

  /** Takes an answer to `POST /checkouts`. `endBefore`: the end that was known when the request was sent. */
  told(key: string, variant: Variant, reply: Reply, endBefore: Attempt['end'], situation: Situation): void {
    const attempt = this.attempt(key)
    if (situation.disturbed) attempt.disturbed = true
    const code: string | undefined = reply.json?.code
    const refuse = (why: string): never => {
      throw new Violation(`${key} ${variant.name}: ${why}: ${reply.status} ${reply.text}`)
    }
    const must = (holds: boolean, why: string): void => {
      if (!holds) refuse(why)
    }
    const ended = () => {
      const { end } = attempt
      if (end !== undefined)
        must(end.text === reply.text && end.status === reply.status, `not the first answer ${end.text}`)
      if (endBefore !== undefined) must(reply.replayed, 'a repeat that is not marked')
      attempt.end = { status: reply.status, text: reply.text }
    }
    const owns = (orderId: string) => {
      must(attempt.owner === undefined || attempt.owner === variant, `belongs to ${attempt.owner?.name}`)
      must(attempt.orderId === undefined || attempt.orderId === orderId, `another order than ${attempt.orderId}`)
      attempt.owner = variant
      attempt.orderId = orderId
    }
    const isFree = () => must(attempt.owner === undefined, `refused as if new, after ${attempt.owner?.name}`)

    switch (code ?? reply.status) {
      case 201:
        owns(reply.json.id)
        must(reply.json.status === (variant.hold ? 'authorized' : 'paid'), 'paid otherwise than asked')
        must(reply.json.total === variant.total, 'another total')
        must(mayBePaid(variant, attempt), 'paid without the customer')
        ended()
        return
      case 202:
        owns(reply.json.id)
        must(['requires_action', 'needs_reconcile'].includes(reply.json.status), 'an open answer of no open order')
        must(
          reply.json.status !== 'requires_action' || variant.card === 'asks',
          'asks for an action that it does not need',
        )
        must(reply.headers.has('retry-after'), 'no Retry-After')
        must(endBefore === undefined, `open again after ${endBefore?.text}`)
        return
      case 'card_declined':
        owns(reply.json.order_id)
        must(mayBeDeclined(variant, attempt), 'declined without a reason')
        must(reply.json.new_key_safe === true, 'not safe')
        ended()
        return
      case 'checkout_canceled':
        owns(reply.json.order_id)
        must(mayBeCanceled(attempt), 'canceled by nobody')
        must(reply.json.new_key_safe === true, 'not safe')
        ended()
        return
      case 'idempotency_key_conflict':
        must(attempt.owner !== variant, 'in conflict with itself')
        must(reply.json.differing.length > 0, 'differs in nothing')
        return
      case 'cart_in_progress':
      case 'cart_already_paid':
        isFree()
        must(variant.cart !== undefined, 'no cart')
        must(reply.json.new_key_safe === false, 'safe')
        return
      case 'out_of_stock':
        isFree()
        must(variant.scarce === true, 'there is enough')
        return
      case 'idempotency_key_in_progress':
        must(!situation.alone || attempt.disturbed, 'nobody else is at it')
        must(endBefore === undefined, 'in progress after its end')
        must(reply.json.new_key_safe === false, 'safe')
        return
      case 'provider_unavailable':
        must(situation.disturbed || attempt.disturbed, 'nothing was wrong')
        must(endBefore === undefined, 'unavailable after its end')
        must(reply.headers.has('retry-after') && reply.json.new_key_safe === false, 'incomplete')
        return
      case 'internal':
        must(situation.crashed, 'a fault of ours')
        return
      default:
        refuse('not an answer of the contract')
    }
  }

  /** Compares with the provider's books, which may be behind or ahead of the answers but never against them. */
  compare(payments: readonly BookedPayment[]): void {
    for (const [key, attempt] of this.#attempts) {
      const ours = payments.filter((payment) => payment.metadata.key === key)
      const charged = ours.filter((payment) => payment.amount_received > 0 || payment.amount_capturable > 0)
      const kept = charged.reduce((sum, payment) => sum + payment.amount_received - refundedOf(payment), 0)
      const held = charged.reduce((sum, payment) => sum + payment.amount_capturable, 0)
      const say = (why: string): never => {
        throw new Violation(`${key} ${attempt.owner?.name}: ${why}: ${JSON.stringify(ours)}`)
      }
      if (charged.length > 1) say('charged twice')
      if (attempt.owner !== undefined && charged.some(({ amount }) => amount !== attempt.owner?.total))
        say('another amount')
      const refunded = ours.reduce((sum, payment) => sum + refundedOf(payment), 0)
      if (attempt.end?.status === 201) {
        const { total = 0 } = attempt.owner ?? {}
        const least = attempt.holdEnds ? 0 : total - attempt.refundsAsked
        if (kept + held > total || kept + held < least) say('told as paid, without the money')
        if (refunded > attempt.refundsAsked) say('more has gone back than was asked for')
      }
      if (attempt.end !== undefined && attempt.end.status !== 201 && kept + held > 0)
        say('told as safe, with money kept')
    }
  }

  /** Whether an attempt may have ended so, once everything has calmed down. */
  mayEndAs(key: string, status: string): boolean {
    const attempt = this.attempt(key)
    if (attempt.owner === undefined) return true
    if (status === 'canceled') return mayBeCanceled(attempt) || attempt.holdEnds
    if (status === 'payment_failed') return mayBeDeclined(attempt.owner, attempt)
    const paid = attempt.owner.hold && !attempt.holdEnds ? 'authorized' : 'paid'
    return (
      mayBePaid(attempt.owner, attempt) && (status === paid || (status === 'authorized' && attempt.owner.hold === true))
    )
  }

  /** An attempt that nothing has disturbed ends as its card says, and no other way. */
  mustEndAs(key: string): string | undefined {
    const { owner, gaveUp, decided, holdEnds, timePassed, disturbed } = this.attempt(key)
    if (owner === undefined || gaveUp || decided.size > 0 || holdEnds || timePassed || disturbed) return undefined
    if (owner.card === 'good') return owner.hold ? 'authorized' : 'paid'
    return owner.card === 'declined' ? 'payment_failed' : undefined
  }
}

function mayBePaid(variant: Variant, attempt: Attempt): boolean {
  return variant.card === 'good' || (variant.card !== 'declined' && attempt.acted.has('succeed'))
}

function mayBeCanceled(attempt: Attempt): boolean {
  return (
    attempt.gaveUp || attempt.timePassed || attempt.decided.has('canceled') || attempt.decided.has('payment_failed')
  )
}

function mayBeDeclined(variant: Variant, attempt: Attempt): boolean {
  return (
    variant.card === 'declined' ||
    (variant.card !== 'good' && attempt.acted.has('fail')) ||
    attempt.decided.has('payment_failed')
  )
}

function refundedOf(payment: BookedPayment): number {
  return payment.refunds
    .filter(({ status }) => status === 'succeeded' || status === 'pending')
    .reduce((sum, { amount }) => sum + amount, 0)
}
