/** Every command of the runbook, run as it stands there by a shell, against a service in the state that it is for. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Service } from '../../src/service.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { cart, keys } from '../support/client.ts'
import { sectionOf } from '../support/markdown.ts'
import { place, refund } from '../support/money-back.ts'
import { deliver, notification } from '../support/notifications.ts'
import { startProxy } from '../support/proxy.ts'
import { startReceiver } from '../support/receiver.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { chargedInDoubt, mismatched } from '../support/stuck.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/runbook.md'), 'utf8')
const charges = { method: 'POST', path: '/v1/payment_intents' }

let scene: Scene
beforeAll(async () => {
  scene = await startScene({
    settings: { METRICS_PORT: '0', CHECKOUT_BUDGET_MS: '2000', MERCHANT_WEBHOOK_ALLOW_PRIVATE: 'true' },
  })
  await scene.books.webhooks({ drop: 1 })
})
afterEach(() => scene.books.noFaults())
afterAll(() => scene.stop())

const hasCurl = spawnSync('curl', ['--version']).error === undefined

describe.skipIf(!hasCurl)(`the commands${hasCurl ? '' : ' (curl is not installed)'} for`, () => {
  it('a process that is down', async () => {
    expect(await commandsOf('A process is down')).toEqual(['{"status":"ok"}{"status":"ready"}'])
  })

  it('a database that cannot be reached', async () => {
    const proxy = await startProxy(scene.databaseUrl)
    const service = await scene.start({ METRICS_PORT: '0', DATABASE_URL: proxy.through(scene.databaseUrl) })
    proxy.refuse()
    proxy.cutAll()
    const [shown] = await commandsOf('The database cannot be reached', {}, service)
    expect(shown).toContain('{"status":"database unavailable"}')
    expect(shown).toContain('checkout_database_up 0\n')
    expect(shown).toContain('checkout_database_connections{state="queued"}')
    await service.stop()
    await proxy.close()
  })

  it('requests that fail, and calls that bring nothing definite', async () => {
    await scene.books.fault({ ...charges, fault: 'rate_limit' })
    expect((await scene.shop.checkout(newKey())).status).toBe(503)
    await scene.books.noFaults()
    const [failed] = await commandsOf('Requests fail')
    expect(failed).toContain('status="503",code="provider_unavailable",replayed="false"} 1\n')

    const { id } = await chargedInDoubt(scene)
    const [shown, pressed] = await commandsOf('The provider does not answer', { ORDER: id })
    expect(shown).toContain('outcome="not_sent"')
    expect(shown).toContain('checkout_needs_reconcile_orders{reason="provider_error"} 1\n')
    expect(pressed).toContain(`"id":"${id}"`)
    expect(await shownAs(id)).toBe('paid')
  })

  it('checkouts that are slow', async () => {
    const [shown] = await commandsOf('Checkouts are slow')
    expect(shown).toContain('checkout_provider_call_seconds_sum{operation="payment.create"}')
    expect(shown).toContain('nodejs_eventloop_lag_p99_seconds')
  })

  it('overload', async () => {
    const service = await scene.start({ METRICS_PORT: '0', ATTEMPTS_AT_ONCE: '1' })
    await scene.books.fault({ ...charges, fault: 'latency', latency_ms: 1500, times: 1 })
    const shop = scene.shop.at(service.url)
    const first = shop.checkout(newKey())
    await until(() => service.deps.twins.size === 1, { what: 'the first to be under way' })
    const second = await shop.checkout(newKey())
    expect([second.status, second.json.code]).toEqual([503, 'overloaded'])
    const [shown] = await commandsOf('Overload', {}, service)
    expect(shown).toContain('checkout_attempts_under_way{state="running"} 1\n')
    expect(shown).toContain('checkout_group_size_count{step="claim"} 1\n')
    await first
  })

  it('clients that reuse keys', async () => {
    const key = newKey()
    await scene.shop.checkout(key)
    expect((await scene.shop.checkout(key, cart({ payment_method: 'pm_card_mastercard' }))).status).toBe(409)
    const [shown] = await commandsOf('Clients reuse keys')
    expect(shown).toMatch(/code="idempotency_key_conflict",replayed="false"\} 1\n$/)
  })

  it('credentials that the provider refuses', async () => {
    const service = await scene.start({ METRICS_PORT: '0', STRIPE_SECRET_KEY: 'sk_test_expired_scene' })
    await scene.shop.at(service.url).checkout(newKey())
    const [shown] = await commandsOf('The provider refuses our credentials', {}, service)
    expect(shown).toMatch(/^checkout_provider_alerts_total\{reason="unauthorized"\} [1-9]/m)
  })

  it('an order that stays unknown', async () => {
    const { id } = await chargedInDoubt(scene)
    await scene.books.fault(
      { method: 'GET', path: '/v1/', fault: 'error_before' },
      { ...charges, fault: 'error_before' },
    )
    const [shown, decided] = await commandsOf('An order stays unknown', { ORDER: id })
    expect(shown).toMatch(/^checkout_needs_reconcile_age_seconds\{reason="\w+"\} \d/m)
    expect(shown).toContain(`"id":"${id}"`)
    expect(shown).toContain('"request_id":"req_')
    // Nobody can cancel what has been charged, even where the provider cannot be asked.
    expect(decided).toContain('"code":"provider_unavailable"')
    await scene.books.noFaults()
    expect((await commandsOf('An order stays unknown', { ORDER: id }))[1]).toContain('"code":"provider_disagrees"')
    expect(await shownAs(id)).toBe('paid')
  })

  it('an order that needs a decision', async () => {
    const { id } = await mismatched(scene, 1200)
    const [shown, decided] = await commandsOf('An order needs a decision', { ORDER: id })
    expect(shown).toContain('checkout_needs_reconcile_orders{reason="amount_mismatch"} 1\n')
    expect(shown).toContain('checkout_suspense_amount{currency="EUR"} 1200\n')
    expect(decided).toContain('"action":"decide_refund_suspense"')
    expect(await shownAs(id)).toBe('canceled')
    await runJobs(scene.service.deps)
  })

  it('orders that do not end', async () => {
    const worker = await scene.start({ METRICS_PORT: '0', ROLES: 'worker' })
    const looked = async () => (await commandsOf('Orders do not end', {}, worker))[0] ?? ''
    await until(async () => (await looked()).includes('{worker="recover-orders",failed="false"}'), { everyMs: 200 })
    expect(await looked()).toMatch(/^checkout_open_order_age_seconds\{status="requires_action"\} 0$/m)
    await worker.stop()
  })

  it('books that differ', async () => {
    const { id: orderId, intent } = await place(scene)
    await scene.books.control('POST', '/refunds', { payment_intent: intent, amount: 250 })
    const hour = 3_600_000
    const { json } = await scene.admin.post('/v1/admin/reports', {
      from: new Date(Date.now() - hour).toISOString(),
      to: new Date(Date.now() + hour).toISOString(),
    })
    await runJobs(scene.service.deps)
    const [shown, help] = await commandsOf('The books differ', { REPORT: json.id })
    expect(shown).toMatch(/^checkout_books_findings\{kind="amount_differs"\} 1$/m)
    expect(shown).toContain(`"order_id":"${orderId}"`)
    expect(help).toContain('reconcile report')
  })

  it('a refund that stays in doubt', async () => {
    const placed = await place(scene)
    await scene.books.fault({ method: 'POST', path: '/v1/refunds', fault: 'error_after' })
    expect((await refund(scene.backend, placed.id)).status).toBe(202)
    await scene.books.noFaults()
    const [shown] = await commandsOf('A refund stays in doubt', { ORDER: placed.id })
    expect(shown).toContain('checkout_refunds_in_doubt{status="pending"} 1\n')
    expect(shown).toContain(`"id":"${placed.id}"`)
  })

  it('work that is not done, and a job that was given up', async () => {
    const { id: orderId } = await place(scene)
    const [late] = await commandsOf('Work is not done')
    expect(late).toMatch(/^checkout_jobs\{state="due"\} [1-9]/m)
    expect(late).toContain(`order_news:${orderId}:paid`)

    await scene.db
      .updateTable('jobs')
      .set({ state: 'dead', last_error: 'timeout' })
      .where('business_id', '=', `${orderId}:paid`)
      .execute()
    const [shown, decided] = await commandsOf('A job was given up', { JOB: `order_news:${orderId}:paid` })
    expect(shown).toContain('checkout_dead_jobs{topic="order_news"} 1\n')
    expect(shown).toContain('"last_error":"timeout"')
    expect(decided).toMatch(/"state":"ready".*"state":"discarded"/s)
  })

  it('an email that is in doubt', async () => {
    const { id: orderId } = await place(scene)
    await runJobs(scene.service.deps)
    await scene.db.updateTable('emails').set({ state: 'uncertain' }).where('order_id', '=', orderId).execute()
    const [shown, decided] = await commandsOf('An email is in doubt', { EMAIL: `${orderId}:paid` })
    expect(shown).toContain('checkout_emails_to_decide{state="uncertain"} 1\n')
    expect(shown).toContain(`"id":"${orderId}:paid"`)
    expect(decided).toMatch(/"state":"sent".*"state":"waiting"/s)
  })

  it('notifications that are refused, and those that fit no order', async () => {
    const foreign = notification('payment_intent.succeeded', {
      id: 'pi_of_others',
      object: 'payment_intent',
      status: 'succeeded',
    })
    expect((await deliver(scene.service.url, foreign, { secrets: ['whsec_of_others'] })).status).toBe(401)
    expect((await deliver(scene.service.url, foreign)).status).toBe(200)
    const [refused] = await commandsOf('Notifications are refused')
    expect(refused).toContain('checkout_notifications_total{result="signature_invalid"} 1\n')
    await runJobs(scene.service.deps)
    const [shown, replayed] = await commandsOf('Notifications fit no order', { EVENT: foreign.id })
    expect(shown).toMatch(/^checkout_strange_events\{state="foreign"\} 1$/m)
    expect(shown).toContain(foreign.id)
    expect(replayed).toContain(foreign.id)
  })

  it('a merchant that gets no events', async () => {
    const merchant = await startReceiver()
    merchant.answer((_post, response) => void response.writeHead(410).end())
    await scene.backend.put('/v1/webhook-endpoint', { url: merchant.url })
    const { id: orderId } = await place(scene)
    await runJobs(scene.service.deps)
    const { event_id } = await scene.db
      .selectFrom('merchant_events')
      .select('event_id')
      .where('order_id', '=', orderId)
      .executeTakeFirstOrThrow()
    const [shown, sent] = await commandsOf('A merchant gets no events', { EVENT: event_id })
    expect(shown).toContain('checkout_disabled_endpoints{reason="gone"} 1\n')
    expect(shown).toContain(event_id)
    expect(sent).toContain(`"id":"${event_id}"`)
    await scene.backend.delete('/v1/webhook-endpoint')
    await merchant.stop()
  })

  it('every part that has some', () => {
    const own = readFileSync(import.meta.filename, 'utf8')
    const headings = [...page.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading)
    expect(headings.length).toBeGreaterThan(15)
    expect(headings.filter((heading) => !own.includes(`commandsOf('${heading}'`))).toEqual([])
  })
})

/** What each block of a part prints. Docker Compose is not here; its commands are left out. */
async function commandsOf(
  heading: string,
  variables: Record<string, string> = {},
  service: Service = scene.service,
): Promise<string[]> {
  const blocks = blocksOf(sectionOf(page, heading))
  expect(blocks.length, heading).toBeGreaterThan(0)
  const [helpers = ''] = blocksOf(page)
  const outputs: string[] = []
  for (const block of blocks) {
    const commands = block.replace(/^docker compose .*\n/gm, '')
    if (commands !== '') outputs.push(await shell(`${addressed(helpers, service)}\n${commands}`, variables))
  }
  return outputs
}

function blocksOf(markdown: string): string[] {
  return [...markdown.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/** The page's own first block, with the addresses of this service. */
function addressed(helpers: string, service: Service): string {
  return helpers
    .replace(/^CHECKOUT=.*$/m, `CHECKOUT=${scene.service.url}`)
    .replace(/^OPERATIONS=.*$/m, `OPERATIONS=${service.operationsUrl}`)
    .replace(/^ADMIN_KEY=.*$/m, `ADMIN_KEY=${keys.admin}`)
}

async function shell(script: string, variables: Record<string, string>): Promise<string> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  expect([code, stderr], script).toEqual([0, ''])
  return stdout
}

async function shownAs(orderId: string): Promise<string> {
  return (await scene.backend.get(`/v1/orders/${orderId}`)).json.status
}
