/** What others were told of orders, or may not have been: emails in doubt, and deliveries that failed. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { auditedTransaction } from '../../flows/operators/operator.ts'
import {
  decideEmailWasSent,
  type Email,
  emailsOf,
  listEmailsToDecide,
  sendEmailAgain,
  splitId,
} from '../../store/emails.ts'
import { listDeliveries, readEvent, redeliverEvent } from '../../store/merchant-events.ts'
import type { App } from '../app-type.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin.ts'
import { bodyOptional, closed, EmptyBody, IdParams } from '../input.ts'
import { listPage, PageQuery, pageFrom, pageProperties } from '../paging.ts'
import { deliveryView } from '../webhook-endpoint.ts'
import { type Admission, FilterFlag, FilterText, operatorOf } from './operator.ts'

const DeliveryQuery = closed({
  ...pageProperties,
  failed: Type.Optional(FilterFlag),
  undelivered: Type.Optional(FilterFlag),
  event_id: Type.Optional(FilterText),
})

const decisions = {
  /** It has arrived. */
  sent: { decide: decideEmailWasSent, about: contract.emailWasSent },
  /** It may arrive twice. */
  'send-again': { decide: sendEmailAgain, about: contract.sendEmailAgain },
}

export function adminNewsRoutes(app: App, deps: Deps, preParsing: Admission): void {
  const post = { preParsing, preValidation: bodyOptional }
  const input = { params: IdParams, body: EmptyBody }

  app.get(
    '/v1/admin/emails',
    { preParsing, schema: { ...contract.listEmails, querystring: PageQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const emails = await listEmailsToDecide(deps.db, callerOf(request).tenantId, page)
      return listPage(emails, page, emailView, emailId)
    },
  )

  for (const [name, { decide, about }] of Object.entries(decisions)) {
    app.post(`/v1/admin/emails/:id/${name}`, { ...post, schema: { ...about, ...input } }, async (request) => {
      const by = operatorOf(request)
      const [orderId, kind] = splitId(request.params.id)
      const before = (await emailsOf(deps.db, by.tenantId, orderId)).find((email) => email.kind === kind)
      if (before === undefined) throw new Problem('not_found')
      const act = {
        action: name === 'sent' ? 'email_was_sent' : 'send_email_again',
        target: { type: 'email' as const, id: emailId(before), orderId },
      }
      return auditedTransaction(deps.db, by, act, async (tx) => {
        const email = await decide(tx, by.tenantId, orderId, kind)
        if (email === null) {
          throw new Problem('email_state_conflict', {
            detail: `The email is ${before.state}.`,
            members: { state: before.state },
          })
        }
        return emailView(email)
      })
    })
  }

  app.get(
    '/v1/admin/deliveries',
    { preParsing, schema: { ...contract.listAllDeliveries, querystring: DeliveryQuery } },
    async (request) => {
      const { failed, undelivered, event_id: eventId } = request.query
      const page = pageFrom(request.query)
      const deliveries = await listDeliveries(deps.db, callerOf(request).tenantId, page, {
        ...(failed === 'true' ? { failed: true } : {}),
        ...(undelivered === 'true' ? { undelivered: true } : {}),
        ...(eventId === undefined ? {} : { eventId }),
      })
      return listPage(deliveries, page, deliveryView, (delivery) => delivery.delivery_id)
    },
  )

  app.post(
    '/v1/admin/merchant-events/:id/redeliver',
    { ...post, schema: { ...contract.redeliverEvent, ...input } },
    async (request) => {
      const by = operatorOf(request)
      const event = await readEvent(deps.db, by.tenantId, request.params.id)
      if (event === null) throw new Problem('not_found')
      const { event_id: id, order_id: orderId } = event
      const act = { action: 'redeliver', target: { type: 'merchant_event' as const, id, orderId } }
      return auditedTransaction(deps.db, by, act, async (tx) => {
        if ((await redeliverEvent(tx, by.tenantId, id)) === null) {
          throw new Problem('job_state_conflict', { detail: 'It is being delivered this moment.', orderId })
        }
        return { id, object: 'merchant_event' as const, type: event.type, order_id: orderId }
      })
    },
  )
}

function emailId({ order_id, kind }: Email): string {
  return `${order_id}:${kind}`
}

function emailView(email: Email) {
  return {
    id: emailId(email),
    object: 'email' as const,
    order_id: email.order_id,
    kind: email.kind,
    state: email.state,
    reason: email.reason,
    amount: email.amount,
    created_at: email.created_at.toISOString(),
    updated_at: email.updated_at.toISOString(),
  }
}
