/** A shop in which something of every kind needs a person. */
import { createHash } from 'node:crypto'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { cart } from './client.ts'
import { type MailServer, startMailServer } from './mail-server.ts'
import { deliver, notification, providerObject } from './notifications.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { newKey, type Scene, startScene } from './scene.ts'
import { mismatched, neverArrived } from './stuck.ts'

/** Text that would be markup, were it ever taken for it. */
export const hostile = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'

/** Of the other tenant. */
export const otherAdminKey = 'ak_other'

export interface ConsoleStage {
  scene: Scene
  mail: MailServer
  merchant: Receiver
  work(): Promise<number>
  stop(): Promise<void>
}

/** Workers run by hand, notifications are sent by hand. */
export async function startConsoleStage(): Promise<ConsoleStage> {
  const mail = await startMailServer()
  const merchant = await startReceiver()
  const scene = await startScene({
    settings: {
      CHECKOUT_BUDGET_MS: '4000',
      SMTP_URL: mail.url,
      MAIL_FROM: 'Demo shop <orders@shop.example>',
      MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true',
    },
  })
  await scene.db
    .insertInto('api_keys')
    .values({
      key_hash: createHash('sha256').update(otherAdminKey).digest(),
      tenant_id: 'ten_other',
      role: 'admin',
      label: 'other admin',
      revoked_at: null,
    })
    .execute()
  await scene.books.webhooks({ drop: 1 })
  await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
  return {
    scene,
    mail,
    merchant,
    work: () => runJobs(scene.service.deps),
    async stop() {
      await scene.stop()
      await mail.stop()
      await merchant.stop()
    },
  }
}

export async function makeJobDead(scene: Scene, businessId: string): Promise<void> {
  await scene.db
    .updateTable('jobs')
    .set({ state: 'dead', attempts: 36, last_error: 'unexpected_error', finished_at: new Date() })
    .where('business_id', '=', businessId)
    .execute()
}

/** One of each: a stuck order, money in suspense, a flag, a dispute, a dead job, an email in doubt, an event that the
 * merchant did not take, notifications that fit nothing, and a report. `rich` is the order with the longest story. */
export async function fillConsole({ scene, mail, merchant, work }: ConsoleStage): Promise<{
  stuck: string
  suspense: string
  rich: string
  event: string
  report: string
}> {
  await scene.backend.put('/v1/products/hostile', {
    name: hostile,
    unit_price: 123_456,
    currency: 'EUR',
    available: 100,
  })
  const bought = await scene.shop.checkout(
    newKey(),
    cart({
      items: [{ sku: 'hostile', quantity: 2 }],
      metadata: { note: hostile },
      customer: { email: 'grace@example.com', name: hostile },
    }),
  )
  const rich = bought.json.id as string
  const intent = bought.json.payment.reference as string
  await work()
  await scene.backend.post(
    `/v1/orders/${rich}/refunds`,
    { amount: 500, reason: hostile },
    { 'idempotency-key': newKey() },
  )
  await scene.books.control('POST', '/disputes', { payment_intent: intent, amount: 1000 })
  const told = notification('payment_intent.succeeded', await providerObject(scene, `payment_intents/${intent}`))
  await deliver(scene.service.url, told)
  await scene.admin.post(`/v1/admin/orders/${rich}/reconcile`)
  await work()

  const other = await scene.shop.checkout(newKey())
  const object = await providerObject(scene, `payment_intents/${other.json.payment.reference}`)
  await deliver(
    scene.service.url,
    notification('payment_intent.succeeded', { ...object, metadata: { tenant: 'ten_demo', order: rich } }),
  )
  await deliver(
    scene.service.url,
    notification('payment_intent.succeeded', { ...object, id: 'pi_strange', metadata: {} }),
  )
  await work()

  const report = await scene.admin.post('/v1/admin/reports', {
    from: new Date(Date.now() - 86_400_000).toISOString(),
    to: new Date(Date.now() - 60_000).toISOString(),
  })
  await work()

  mail.faults.push('vanish')
  merchant.answer((_post, response) => void response.writeHead(500).end())
  await scene.shop.checkout(newKey())
  await work()
  const unspread = await scene.shop.checkout(newKey())
  await makeJobDead(scene, `${unspread.json.id}:paid`)
  const suspense = await mismatched(scene, 999)
  const stuck = await neverArrived(scene)
  await recoverOrders(scene.service.deps)
  return { stuck: stuck.id, suspense: suspense.id, rich, event: told.id, report: report.json.id }
}
