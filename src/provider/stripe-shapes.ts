import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { fromProviderAmount } from '../domain/money.ts'
import type { ProviderDispute, ProviderPayment, ProviderRefund } from './port.ts'

/**
 * What we read of Stripe's objects. Nothing else of them is looked at, and an object that lacks any of it is not
 * guessed at: it is unreadable. Amounts come out in our minor units, currencies in upper case.
 */

const nullable = <Shape extends Type.TSchema>(shape: Shape) => Type.Optional(Type.Union([shape, Type.Null()]))
const Id = Type.String({ minLength: 1 })
const Count = Type.Integer({ minimum: 0 })
/** Unix time. The upper bound is what a JavaScript date can hold. */
const Seconds = Type.Integer({ minimum: 0, maximum: 8_640_000_000_000 })
/** An object's id, or the object itself where it was expanded. */
const Reference = nullable(Type.Union([Id, Type.Object({ id: Id })]))
const Metadata = nullable(Type.Record(Type.String(), Type.String()))
const CardDetails = nullable(Type.Object({ card: nullable(Type.Object({ capture_before: nullable(Seconds) })) }))

/** The amounts of a charge, by which a refund is told from the part of a hold that was let go. */
const chargeAmounts = { amount: Count, amount_captured: Count, amount_refunded: Count }
const ExpandedCharge = Type.Object({ id: Id, ...chargeAmounts, payment_method_details: CardDetails })

const Intent = Compile(
  Type.Object({
    id: Id,
    object: Type.Literal('payment_intent'),
    status: Type.String(),
    amount: Count,
    amount_received: Count,
    amount_capturable: Count,
    currency: Type.String(),
    livemode: Type.Boolean(),
    created: Seconds,
    client_secret: nullable(Type.String()),
    latest_charge: nullable(Type.Union([Id, ExpandedCharge])),
    last_payment_error: nullable(Type.Object({ code: nullable(Type.String()), decline_code: nullable(Type.String()) })),
    metadata: Metadata,
  }),
)

const Charge = Compile(
  Type.Object({
    status: Type.String(),
    ...chargeAmounts,
    captured: Type.Boolean(),
    currency: Type.String(),
    payment_method_details: CardDetails,
    metadata: Metadata,
  }),
)

const Refund = Compile(
  Type.Object({
    id: Id,
    object: Type.Literal('refund'),
    status: Type.String(),
    amount: Count,
    currency: Type.String(),
    created: Seconds,
    payment_intent: Reference,
    metadata: Metadata,
  }),
)

const disputeFacts = { status: Type.String(), amount: Count, currency: Type.String() }
const ToldDispute = Compile(Type.Object({ ...disputeFacts, reason: Type.String() }))
const Dispute = Compile(
  Type.Object({
    id: Id,
    object: Type.Literal('dispute'),
    ...disputeFacts,
    balance_transactions: Type.Array(Type.Object({ amount: Type.Integer() })),
  }),
)

/** https://docs.stripe.com/api/events/object */
const Event = Compile(
  Type.Object({
    id: Id,
    type: Id,
    created: Type.Union([Seconds, Type.String()]),
    livemode: Type.Boolean(),
    account: nullable(Id),
    api_version: nullable(Type.String()),
    data: nullable(Type.Object({ object: Type.Optional(Type.Unknown()) })),
  }),
)
const Named = Compile(
  Type.Object({
    object: Type.Optional(Type.String()),
    id: Type.Optional(Id),
    payment_intent: Reference,
    charge: Reference,
  }),
)

const Page = Compile(Type.Object({ data: Type.Array(Type.Object({ id: Id })), has_more: Type.Boolean() }))
const Owned = Compile(Type.Object({ metadata: Metadata }))
const Account = Compile(Type.Object({ id: Id, object: Type.Literal('account') }))

/** A PaymentIntent. What has been refunded is known only where its charge was expanded; without, it is given as 0. */
export function readPayment(value: unknown): ProviderPayment | undefined {
  if (!Intent.Check(value)) return undefined
  const charge = typeof value.latest_charge === 'object' ? value.latest_charge : null
  const failure = value.last_payment_error
  return money(value.currency, (currency, minor) => ({
    intentId: value.id,
    chargeId: idOf(value.latest_charge),
    status: value.status,
    amount: minor(value.amount),
    amountCaptured: minor(value.amount_received),
    amountCapturable: minor(value.amount_capturable),
    amountRefunded: charge === null || charge === undefined ? 0 : minor(refunded(charge)),
    currency,
    livemode: value.livemode,
    createdAt: date(value.created),
    captureBefore: captureBefore(charge?.payment_method_details),
    clientSecret: value.status === 'requires_action' ? (value.client_secret ?? null) : null,
    declineCode: failure?.decline_code || failure?.code || null,
    metadata: pick(value.metadata, 'tenant', 'order', 'key'),
  }))
}

export function readRefund(value: unknown): ProviderRefund | undefined {
  if (!Refund.Check(value)) return undefined
  const status = refundStatus(value.status)
  if (status === undefined) return undefined
  return money(value.currency, (currency, minor) => ({
    refundId: value.id,
    intentId: idOf(value.payment_intent),
    amount: minor(value.amount),
    currency,
    status,
    createdAt: date(value.created),
    metadata: pick(value.metadata, 'tenant', 'order', 'refund'),
  }))
}

/** https://docs.stripe.com/api/refunds/object: one that waits for an action of the customer is still on its way, one
 * that was canceled has given no money back. */
function refundStatus(status: string): ProviderRefund['status'] | undefined {
  switch (status) {
    case 'succeeded':
    case 'pending':
    case 'failed':
      return status
    case 'requires_action':
      return 'pending'
    case 'canceled':
      return 'failed'
    default:
      return undefined
  }
}

/** A dispute as the API has it. What it has moved are the lines in the balance: one when the money is taken, one when it
 * comes back (https://docs.stripe.com/api/disputes/object). */
export function readDispute(value: unknown): ProviderDispute | undefined {
  if (!Dispute.Check(value)) return undefined
  const lines = value.balance_transactions
  return money(value.currency, (currency, minor) => ({
    disputeId: value.id,
    amount: minor(value.amount),
    currency,
    status: value.status,
    moved: lines.some(({ amount }) => amount > 0)
      ? 'reinstated'
      : lines.some(({ amount }) => amount < 0)
        ? 'withdrawn'
        : null,
  }))
}

/** A charge in a notification. */
export function readCharge(value: unknown) {
  if (!Charge.Check(value)) return undefined
  return money(value.currency, (currency, minor) => ({
    status: value.status,
    amount: minor(value.amount),
    amountCaptured: minor(value.amount_captured),
    amountCapturable: value.status === 'succeeded' && !value.captured ? minor(value.amount) : 0,
    amountRefunded: minor(refunded(value)),
    currency,
    captureBefore: captureBefore(value.payment_method_details),
    metadata: pick(value.metadata, 'tenant', 'order', 'key'),
  }))
}

/** A dispute in a notification. */
export function readToldDispute(value: unknown) {
  if (!ToldDispute.Check(value)) return undefined
  return money(value.currency, (currency, minor) => ({
    status: value.status,
    amount: minor(value.amount),
    currency,
    disputeReason: value.reason,
  }))
}

/** A notification's envelope, and of the object within what can be said before its kind is known. */
export function readEvent(value: unknown) {
  if (!Event.Check(value)) return undefined
  // Some of Stripe's events have a date in words here; they are none of ours.
  const createdAt = typeof value.created === 'number' ? date(value.created) : new Date(value.created)
  if (Number.isNaN(createdAt.getTime())) return undefined
  const object: unknown = value.data?.object
  const named = Named.Check(object) ? object : {}
  return {
    id: value.id,
    type: value.type,
    account: value.account ?? null,
    livemode: value.livemode,
    createdAt,
    apiVersion: value.api_version ?? null,
    object: {
      kind: named.object ?? null,
      id: named.id ?? null,
      intentId: idOf(named.payment_intent),
      chargeId: idOf(named.charge),
      value: object,
    },
  }
}

/** What a list's item says of whose it is, whether or not the rest of it can be read. */
export function readOwner(item: unknown): { tenant?: string; order?: string } {
  return Owned.Check(item) ? pick(item.metadata, 'tenant', 'order') : {}
}

/** One page of a list; `next` is the id to go on after. */
export function readPage(value: unknown): { items: { id: string }[]; next: string | null } | undefined {
  if (!Page.Check(value)) return undefined
  const last = value.data.at(-1)
  if (!value.has_more) return { items: value.data, next: null }
  return last === undefined ? undefined : { items: value.data, next: last.id }
}

export function readAccountId(value: unknown): string | undefined {
  return Account.Check(value) ? value.id : undefined
}

/** What `read` makes of the amounts, or undefined for a currency or an amount that cannot be ours. */
function money<Result>(
  code: string,
  read: (currency: string, minor: (amount: number) => number) => Result,
): Result | undefined {
  const currency = code.toUpperCase()
  try {
    return read(currency, (amount) => fromProviderAmount(amount, currency))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Stripe counts what was held but not captured as refunded, as soon as the hold has ended. */
function refunded(charge: { amount: number; amount_captured: number; amount_refunded: number }): number {
  return Math.max(0, charge.amount_refunded - (charge.amount - charge.amount_captured))
}

function idOf(reference: string | { id: string } | null | undefined): string | null {
  return typeof reference === 'string' ? reference : (reference?.id ?? null)
}

function captureBefore(details: { card?: { capture_before?: number | null } | null } | null | undefined): Date | null {
  const seconds = details?.card?.capture_before
  return seconds === undefined || seconds === null ? null : date(seconds)
}

function date(seconds: number): Date {
  return new Date(seconds * 1000)
}

function pick<Name extends string>(
  metadata: Record<string, string> | null | undefined,
  ...names: Name[]
): { [name in Name]?: string } {
  const picked: { [name in Name]?: string } = {}
  for (const name of names) {
    const value = metadata?.[name]
    if (value !== undefined) picked[name] = value
  }
  return picked
}
