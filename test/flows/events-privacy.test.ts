/** What the provider tells of people stays with the provider: no row and no line of a log repeats it. */
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Client, cart, keys } from '../support/client.ts'
import { deliver, notification, postRaw, providerObject } from '../support/notifications.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

let scene: Scene
let service: ServiceProcess
beforeAll(async () => {
  scene = await startScene()
  await scene.books.webhooks({ drop: 1 })
  service = await startServiceProcess(scene.env({ ROLES: 'api,worker', LOG_LEVEL: 'trace' }))
})
afterAll(async () => {
  await service.stop()
  await scene.stop()
})

const person = {
  email: 'grace.hopper@navy.example',
  name: 'Grace Brewster Hopper',
  phone: '+1 202 555 0143',
  line1: '1600 Cobol Crescent',
  postal_code: 'VA22202',
  ip: '203.0.113.77',
  last4: 'ends in 8717',
}
const secrets = Object.values(person)

/** Everything that such an object may carry, and more. */
const personal = {
  receipt_email: person.email,
  description: `Order of ${person.name}`,
  statement_descriptor: person.name,
  shipping: {
    name: person.name,
    phone: person.phone,
    address: { line1: person.line1, postal_code: person.postal_code },
  },
  billing_details: { email: person.email, name: person.name, phone: person.phone, address: { line1: person.line1 } },
  customer_details: { email: person.email },
  payment_method_details: { type: 'card', card: { last4: person.last4, name: person.name } },
  last_payment_error: {
    code: 'card_declined',
    decline_code: `declined for ${person.name}`,
    message: `${person.name} (${person.email}) has no money`,
    payment_method: { billing_details: { email: person.email }, card: { last4: person.last4 } },
  },
  evidence: { customer_name: person.name, customer_email_address: person.email, customer_purchase_ip: person.ip },
  failure_reason: person.name,
}

it('whatever events carry, of payments that are ours and of those that are not', async () => {
  const { json } = await new Client(service.url, keys.storefront).checkout(newKey(), cart())
  const intent = await providerObject(scene, `payment_intents/${json.payment.reference}`)
  const charge = await providerObject(scene, `charges/${intent.latest_charge}`)
  const metadata = (object: Record<string, unknown>) => ({ ...(object.metadata as object), ...person })
  const strangers = { tenant: person.name, order: person.email, key: person.phone, refund: person.line1 }
  const events = [
    notification('payment_intent.succeeded', { ...intent, ...personal, metadata: metadata(intent) }),
    notification('payment_intent.payment_failed', { ...intent, ...personal, metadata: metadata(intent) }),
    notification('payment_intent.succeeded', { ...intent, ...personal, metadata: strangers }),
    notification('charge.refunded', { ...charge, ...personal, metadata: metadata(charge) }),
    notification('charge.dispute.created', {
      ...personal,
      id: 'du_1',
      object: 'dispute',
      payment_intent: json.payment.reference,
      status: `lost by ${person.name}`,
      reason: person.name,
      amount: 1,
      currency: 'eur',
    }),
    notification('refund.updated', {
      ...personal,
      id: person.name,
      object: 'refund',
      payment_intent: json.payment.reference,
      charge: person.email,
      status: 'succeeded',
      amount: 1,
      currency: person.name,
      created: 1,
      metadata: strangers,
    }),
    notification('customer.updated', { ...personal, id: person.email, object: 'customer' }),
    notification('payment_intent.processing', { ...intent, ...personal }, { account: person.name }),
  ]
  for (const event of events) expect((await deliver(service.url, event)).status).toBe(200)
  // Refused ones do not stay either.
  const body = JSON.stringify(notification(person.name, personal))
  expect((await postRaw(service.url, body, { 'stripe-signature': `t=1,v1=${person.email}` })).status).toBe(401)
  expect((await deliver(service.url, notification(person.name, personal))).status).toBe(400)

  await until(async () => {
    const runs = await scene.db
      .selectFrom('jobs')
      .select('business_id')
      .where('topic', '=', 'provider_event')
      .where('state', '=', 'ready')
      .where('attempts', '=', 0)
      .execute()
    return runs.length === 0
  })
  const stored = await everything()
  // The search would find something.
  expect(stored).toContain('ada@example.com')
  expect(stored).toContain(json.id)
  for (const secret of secrets) {
    expect(stored.includes(secret), `${secret} in a table`).toBe(false)
    expect(service.log.filter((line) => line.includes(secret))).toEqual([])
  }
  expect(service.log.some((line) => line.includes('payment_intent.succeeded'))).toBe(true)
})

/** Every row of every table as text. */
async function everything(): Promise<string> {
  const tables = await sql<{ name: string }>`
    SELECT quote_ident(table_name) AS name FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`.execute(scene.db)
  const texts: string[] = []
  for (const { name } of tables.rows) {
    const { rows } = await sql<{ text: string }>`SELECT to_jsonb(t)::text AS text FROM ${sql.raw(name)} t`.execute(
      scene.db,
    )
    texts.push(...rows.map(({ text }) => text))
  }
  return texts.join('\n')
}
