/** Notifications as the provider sends them, and as it never would. */
import { createHmac, randomBytes } from 'node:crypto'
import type { Reply } from './client.ts'
import { type Scene, webhookSecret } from './scene.ts'

export interface Notification {
  id: string
  object: 'event'
  type: string
  created: number
  livemode: boolean
  account?: string
  data: { object: Record<string, unknown> }
}

/** An event about an object, with an id of its own. */
export function notification(
  type: string,
  object: Record<string, unknown>,
  more: Partial<Notification> = {},
): Notification {
  return {
    id: `evt_${randomBytes(12).toString('hex')}`,
    object: 'event',
    type,
    created: Math.floor(Date.now() / 1000),
    livemode: false,
    data: { object },
    ...more,
  }
}

export interface Signing {
  /** All of them sign. */
  secrets?: string[]
  /** Seconds from now. */
  age?: number
}

/** The `Stripe-Signature` header over these bytes. */
export function signatureOf(body: string | Uint8Array, { secrets = [webhookSecret], age = 0 }: Signing = {}): string {
  const seconds = Math.floor(Date.now() / 1000) - age
  const signatures = secrets.map((secret) => {
    const hmac = createHmac('sha256', secret).update(`${seconds}.`).update(body)
    return `v1=${hmac.digest('hex')}`
  })
  return [`t=${seconds}`, ...signatures].join(',')
}

/** Sends the event, signed, to a service's inbox. */
export function deliver(url: string | undefined, event: Notification, signing?: Signing): Promise<Reply> {
  const body = JSON.stringify(event, null, 2)
  return postRaw(url, body, { 'content-type': 'application/json', 'stripe-signature': signatureOf(body, signing) })
}

/** Sends these bytes and these headers, and no others, to a service's inbox. */
export async function postRaw(
  url: string | undefined,
  body: string | Uint8Array,
  headers: Record<string, string>,
): Promise<Reply> {
  const response = await fetch(`${url}/v1/webhooks/stripe`, {
    method: 'POST',
    headers,
    // Of a text fetch would make a content type of its own.
    body: new Uint8Array(Buffer.from(body)),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text === '' ? null : JSON.parse(text),
    replayed: false,
  }
}

/** An object as the provider has it now, e.g. `payment_intents/pi_1`. */
export async function providerObject(scene: Scene, path: string): Promise<Record<string, unknown>> {
  return providerCall(scene, 'GET', path)
}

/** A call of the provider's own API, as somebody at its dashboard would cause it. */
export async function providerCall(
  scene: Scene,
  method: string,
  path: string,
  parameters: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  const response = await fetch(`${scene.simulatorUrl}/v1/${path}`, {
    method,
    headers: {
      authorization: 'Bearer sk_test_scene',
      ...(method === 'GET' ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      ...headers,
    },
    ...(method === 'GET' ? {} : { body: new URLSearchParams(parameters).toString() }),
  })
  const answer = (await response.json()) as Record<string, unknown>
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer
}

/** A payment of so many euro cents that names the order and that we know nothing of; resolves with its id. */
export async function payAtProvider(
  scene: Scene,
  { id: order, key }: { id: string; key: string },
  amount: number,
  paymentMethod = 'pm_card_visa',
): Promise<string> {
  const { id } = await providerCall(
    scene,
    'POST',
    'payment_intents',
    {
      amount: String(amount),
      currency: 'eur',
      confirm: 'true',
      payment_method: paymentMethod,
      'payment_method_types[]': 'card',
      'metadata[tenant]': 'ten_demo',
      'metadata[order]': order,
      'metadata[key]': key,
    },
    // The last version that takes a list of payment method types.
    { 'stripe-version': scene.service.deps.provider.versions.api },
  )
  return id as string
}

/** Everything that the provider has had to tell so far, in its own words and order. */
export async function notificationsOf(scene: Scene): Promise<Notification[]> {
  return ((await scene.books.control('GET', '/events')) as { data: Notification[] }).data
}

/** Delivers each to the scene's service, as the provider does until it has been answered. */
export async function deliverAgain(scene: Scene, notifications: readonly Notification[]): Promise<void> {
  for (const each of notifications) {
    const { status } = await deliver(scene.service.url, each)
    if (status !== 200) throw new Error(`${each.type} was answered with ${status}`)
  }
}
