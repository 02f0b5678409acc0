import type Stripe from 'stripe'
import type { Books } from './books.ts'
import type { Page } from './collection.ts'
import { invalidRequest } from './errors.ts'
import type { EventRecord, Subject } from './records.ts'
import { renderCharge, renderIntent, renderPaymentMethod, renderRefund } from './render.ts'
import { renderDispute } from './render-dispute.ts'
import { renderEvent } from './render-event.ts'

export type Kind = 'payment_intent' | 'charge' | 'refund' | 'dispute' | 'payment_method' | 'event' | 'account'

/** What an endpoint answers with: one object, a page of them, or an object that is in no book. */
export type Resource =
  | Subject
  | EventRecord
  | { object: 'list'; url: string; page: Page<Subject | EventRecord> }
  | Stripe.Account

/** Which fields of which kind can be expanded, and to what, https://docs.stripe.com/api/expanding_objects. */
const relations: Record<Kind, Record<string, Kind | 'refunds'>> = {
  payment_intent: { latest_charge: 'charge', payment_method: 'payment_method' },
  charge: { payment_intent: 'payment_intent', refunds: 'refunds' },
  refund: { charge: 'charge', payment_intent: 'payment_intent', payment_method: 'payment_method' },
  dispute: { charge: 'charge', payment_intent: 'payment_intent' },
  payment_method: {},
  event: {},
  account: {},
}

const depthMax = 4

/** Reads `expand[]` for an answer of that kind. Throws Stripe's 400 for what cannot be expanded. */
export function readExpand(expand: string[] | undefined, kind: Kind, isList: boolean): string[][] {
  return (expand ?? []).map((path) => {
    const all = path.split('.')
    const parts = isList && all[0] === 'data' ? all.slice(1) : all
    let at: Kind | 'refunds' | undefined = kind
    for (const part of parts) at = at === 'refunds' || at === undefined ? undefined : relations[at][part]
    const misplaced = isList && parts === all
    if (at === undefined || parts.length === 0 || all.length > depthMax || misplaced) {
      throw invalidRequest(`This property cannot be expanded (${path}).`, { param: 'expand' })
    }
    return parts
  })
}

/** The object as Stripe's API shows it, with the paths given expanded. */
export function present(books: Books, resource: Resource, paths: string[][]): object {
  if (resource.object === 'list') {
    const { data, has_more } = resource.page
    return { object: 'list', url: resource.url, has_more, data: data.map((record) => present(books, record, paths)) }
  }
  if (resource.object === 'account') return resource
  const shown = render(resource) as unknown as Record<string, unknown>
  for (const path of paths) expandPath(books, shown, path)
  return shown
}

/** The object as Stripe's API shows it, nothing expanded. */
export function render(record: Subject | EventRecord): object {
  switch (record.object) {
    case 'payment_intent':
      return renderIntent(record)
    case 'charge':
      return renderCharge(record)
    case 'refund':
      return renderRefund(record)
    case 'dispute':
      return renderDispute(record)
    case 'event':
      return renderEvent(record, record.subject.object === 'hand_made' ? record.subject.body : render(record.subject))
  }
}

function expandPath(books: Books, shown: Record<string, unknown>, path: string[]): void {
  const [field, ...rest] = path
  if (field === undefined) return
  if (field === 'refunds') shown.refunds = refundsOf(books, shown)
  if (typeof shown[field] === 'string') shown[field] = related(books, field, shown[field], shown)
  const next = shown[field]
  if (typeof next === 'object' && next !== null) expandPath(books, next as Record<string, unknown>, rest)
}

function related(books: Books, field: string, id: string, of: Record<string, unknown>): object {
  if (field === 'payment_method') return renderPaymentMethod(id, of as { created: number; livemode: boolean })
  return render((field === 'payment_intent' ? books.intents.peek(id) : books.charges.peek(id)) as Subject)
}

function refundsOf(books: Books, charge: Record<string, unknown>): object {
  const ids = books.intents.peek(charge.payment_intent as string)?.refunds ?? []
  const refunds = ids.map((id) => books.refunds.peek(id)).filter((refund) => refund?.charge === charge.id)
  const data = refunds.reverse().map((refund) => render(refund as Subject))
  return { object: 'list', url: `/v1/charges/${charge.id}/refunds`, has_more: false, data }
}
