/** What a button acts on, for the question that it asks: the order, what it is worth, and whose it is. */
import { money } from '../common/money.ts'
import { pathTo } from './listing.ts'
import { code, facts, type Piece } from './parts.ts'
import type { Story } from './types.ts'
import type { View } from './view.ts'

type Fact = readonly [name: string, ...value: Piece[]]

export function orderSubject(story: Story, ...more: Fact[]): HTMLElement {
  return facts([['Order', code(story.id)], ...worth(story), ...more])
}

/** Where a list shows no more of the order than its id; the rest is read while the person reads. `orderId` is null for what
 * is about none. */
export function subjectOf(view: View, orderId: string | null, ...more: Fact[]): HTMLElement {
  if (orderId === null) return facts(more)
  const shown = facts([['Order', code(orderId)], ['Total', '…'], ['Customer', '…'], ...more])
  view.api.get<Story>(pathTo('orders', orderId), {}, view.signal).then(
    (story) => shown.replaceWith(orderSubject(story, ...more)),
    () => shown.replaceWith(facts([['Order', code(orderId)], ['Total', 'could not be read'], ...more])),
  )
  return shown
}

function worth({ total, currency, customer }: Story): Fact[] {
  const { email = null, name = null } = customer ?? {}
  return [
    ['Total', money(total, currency)],
    ['Customer', email ?? 'erased', name ? ` (${name})` : ''],
  ]
}

/** The order that a job's or an email's id begins with. */
export function orderIn(id: string): string | null {
  return /^ord_[0-9a-z]+/.exec(id)?.[0] ?? null
}
