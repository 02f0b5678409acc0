import type { Change } from './books.ts'
import { checkStep, display } from './currencies.ts'
import { invalidRequest } from './errors.ts'
import { newId } from './random.ts'
import type { ChargeRecord, DisputeRecord, DisputeStatus, PaymentIntentRecord } from './records.ts'

const responseSeconds = 7 * 24 * 3600

type DisputeOpening = {
  /** Minor units; the whole captured amount where it is not given. */
  amount: number | undefined
  status: 'needs_response' | 'warning_needs_response'
  reason: string
}

/** Opens a dispute, which withdraws the amount, or an inquiry (`warning_needs_response`), which does not. */
export function openDispute(change: Change, charge: ChargeRecord, opening: DisputeOpening): DisputeRecord {
  if (!charge.captured) throw invalidRequest(`Charge ${charge.id} has not been captured, so it cannot be disputed.`)
  const amount = opening.amount ?? charge.amount_captured
  checkStep(amount, charge.currency, 'amount')
  const disputable = charge.amount_captured - disputed(change, charge)
  if (amount > disputable) {
    throw invalidRequest(`Only ${display(disputable, charge.currency)} can be disputed.`, { param: 'amount' })
  }
  const created = change.books.now()
  const dispute = change.put<DisputeRecord>({
    object: 'dispute',
    id: newId('du_'),
    account: charge.account,
    livemode: charge.livemode,
    created,
    metadata: {},
    amount,
    currency: charge.currency,
    charge: charge.id,
    payment_intent: charge.payment_intent,
    reason: opening.reason,
    status: opening.status,
    due_by: created + responseSeconds,
    funds_withdrawn: false,
    movements: [],
  })
  const intent = change.books.intents.peek(charge.payment_intent) as PaymentIntentRecord
  change.put({ ...intent, disputes: [...intent.disputes, dispute.id] })
  change.put({ ...charge, disputed: true, dispute_due: null })
  change.emit('charge.dispute.created', dispute, dispute)
  return opening.status === 'needs_response' ? withdrawn(change, dispute) : dispute
}

/** What disputes and inquiries that are not over, or were lost, claim of the charge already. */
function disputed(change: Change, charge: ChargeRecord): number {
  const ids = change.books.intents.peek(charge.payment_intent)?.disputes ?? []
  return ids
    .map((id) => change.books.disputes.peek(id))
    .filter((dispute) => dispute?.charge === charge.id && !['won', 'warning_closed'].includes(dispute.status))
    .reduce((sum, dispute) => sum + (dispute?.amount ?? 0), 0)
}

/** Moves a dispute on: an inquiry closes or becomes a dispute, a dispute is won or lost. */
export function moveDispute(change: Change, dispute: DisputeRecord, status: DisputeStatus): DisputeRecord {
  if (!nextStatuses[dispute.status].includes(status)) {
    const legal = nextStatuses[dispute.status].join(', ') || 'nothing'
    throw invalidRequest(`A dispute that is ${dispute.status} can become ${legal}.`, { param: 'outcome' })
  }
  const moved = change.put({ ...dispute, status })
  if (status === 'needs_response') {
    change.emit('charge.dispute.updated', moved, moved, { status: dispute.status })
    return withdrawn(change, moved)
  }
  if (status === 'won' || status === 'lost' || status === 'warning_closed') {
    const closed = status === 'won' ? reinstated(change, moved) : moved
    change.emit('charge.dispute.closed', closed, closed)
    return closed
  }
  change.emit('charge.dispute.updated', moved, moved, { status: dispute.status })
  return moved
}

const nextStatuses: Record<DisputeStatus, DisputeStatus[]> = {
  warning_needs_response: ['warning_under_review', 'warning_closed', 'needs_response'],
  warning_under_review: ['warning_closed', 'needs_response'],
  warning_closed: [],
  needs_response: ['under_review', 'won', 'lost'],
  under_review: ['won', 'lost'],
  won: [],
  lost: [],
}

function withdrawn(change: Change, dispute: DisputeRecord): DisputeRecord {
  const after = change.put({ ...moneyMoved(change, dispute, -dispute.amount), funds_withdrawn: true })
  change.emit('charge.dispute.funds_withdrawn', after, after)
  return after
}

function reinstated(change: Change, dispute: DisputeRecord): DisputeRecord {
  const after = change.put({ ...moneyMoved(change, dispute, dispute.amount), funds_withdrawn: false })
  change.emit('charge.dispute.funds_reinstated', after, after)
  return after
}

function moneyMoved(change: Change, dispute: DisputeRecord, amount: number): DisputeRecord {
  const movement = { id: newId('txn_'), amount, created: change.books.now() }
  return { ...dispute, movements: [...dispute.movements, movement] }
}
