/** The inbox: notifications of the provider are verified, kept once, and answered at once. Workers do the rest. */
import type { Deps } from '../deps.ts'
import { Problem } from '../domain/problem.ts'
import { isUsed } from '../flows/notifications/events.ts'
import { WebhookSignatureInvalid, WebhookUnreadable } from '../provider/port.ts'
import { checkpoint } from '../runtime/checkpoint.ts'
import { acceptEvent, isWord, orderSaid } from '../store/inbox.ts'
import type { App } from './app-type.ts'
import { receiveEvent } from './contract/notifications.ts'
import { invalidRequest } from './problems.ts'

/** An event holds one object. The largest that matter here have some 10 kB. */
const bodyLimitBytes = 1024 * 1024

export function webhookRoutes(app: App, deps: Deps): void {
  const { notifications, metrics } = deps

  // In a scope of its own: the signature is over the bytes as they came, whatever their type, while JSON stays JSON elsewhere.
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

    scope.post(
      `/v1/webhooks/${notifications.provider}`,
      { bodyLimit: bodyLimitBytes, schema: receiveEvent(notifications.signatureHeader) },
      async (request) => {
        const signature = request.headers[notifications.signatureHeader]
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
        const event = read(body, typeof signature === 'string' ? signature : undefined)
        const said = orderSaid(event)
        request.orderId = said?.orderId ?? null
        request.tenantId = said?.tenantId ?? null
        const wanted = isUsed(event.type)
        const isNew = await acceptEvent(deps.db, notifications.provider, event, wanted)
        metrics.notification(isNew ? (wanted ? 'accepted' : 'ignored') : 'duplicate')
        await checkpoint('events.accepted')
        request.log.info(
          {
            tenant_id: said?.tenantId,
            order_id: said?.orderId,
            event: event.id,
            type: event.type,
            duplicate: !isNew,
          },
          'notification',
        )
        return { received: true }
      },
    )
  })

  function read(body: Buffer, signature: string | undefined) {
    try {
      const event = notifications.read(body, signature, new Date())
      if (!isWord(event.id) || !isWord(event.type)) throw new WebhookUnreadable()
      return event
    } catch (error) {
      if (error instanceof WebhookSignatureInvalid) {
        metrics.notification('signature_invalid')
        deps.log.warn({ reason: `signature_${error.fault}` }, 'a notification was refused')
        throw new Problem('webhook_signature_invalid', {
          detail: 'The signature is missing, or none of our secrets has made it over these bytes lately.',
        })
      }
      if (error instanceof WebhookUnreadable) {
        metrics.notification('unreadable')
        throw invalidRequest('The body is no event.')
      }
      throw error
    }
  }
}
