import type { EventRecord } from './records.ts'
import { accountApiVersion } from './render.ts'

/** The account that plain keys belong to. Any other account is a connected one. */
export const platformAccount = 'acct_1Simulator'

/** An event around the object as it was at that moment, https://docs.stripe.com/api/events/object. */
export function renderEvent(event: EventRecord, object: object): object {
  return {
    id: event.id,
    object: 'event',
    ...(event.account === platformAccount ? {} : { account: event.account }),
    api_version: accountApiVersion,
    created: event.created,
    data: { object, ...(event.previous === null ? {} : { previous_attributes: event.previous }) },
    livemode: event.livemode,
    pending_webhooks: event.pending ? 1 : 0,
    request: event.request ?? { id: null, idempotency_key: null },
    type: event.type,
  }
}
