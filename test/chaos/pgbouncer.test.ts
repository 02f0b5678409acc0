/** Two APIs and two workers, each a process of its own, behind a real PgBouncer in transaction mode. */
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { audit, expectBooksInOrder } from '../support/audit.ts'
import { createEmptyDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { noPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { Office, startShoppers } from '../support/shoppers.ts'
import { until } from '../support/until.ts'

if (noPgBouncer !== undefined) console.warn(`the tests behind PgBouncer are skipped: ${noPgBouncer}`)

/** Leases end soon, so that what a death has cut off is soon taken over. */
const settings = {
  CHECKOUT_BUDGET_MS: '4000',
  PROVIDER_TIMEOUT_MS: '2000',
  IDEMPOTENCY_LEASE_SECONDS: '5',
  IDEMPOTENCY_WAIT_MS: '5000',
  RECONCILE_AFTER_MS: '200',
  RECOVERY_INTERVAL_MS: '100',
  LOG_LEVEL: 'info',
}
/** Connections to Postgres for all processes together; each of them may have more to PgBouncer alone. */
const poolSize = 4

describe.skipIf(noPgBouncer)(`two APIs and two workers${noPgBouncer ? ` (${noPgBouncer})` : ''}`, () => {
  let database: TestDatabase
  let bouncer: PgBouncer
  let scene: Scene
  let ports: number[]
  const apis: ServiceProcess[] = []
  const workers: ServiceProcess[] = []
  let office: Office

  const env = (more: Record<string, string>) =>
    scene.env({ ...settings, DATABASE_URL: bouncer.through(database.url), ...more })
  const startApi = async (place: number) => {
    apis[place] = await startServiceProcess(env({ PORT: String(ports[place]) }))
  }
  const startWorker = async (place: number) => {
    workers[place] = await startServiceProcess(env({ ROLES: 'worker' }))
  }

  beforeAll(async () => {
    database = await createEmptyDatabase()
    bouncer = await startPgBouncer(inject('adminUrl'), { poolSize })
    ports = [await freePort(), await freePort()]
    // The test looks at rows past PgBouncer; the migrations, too, go through it.
    scene = await startScene({
      databaseUrl: database.url,
      settings: { DATABASE_URL: bouncer.through(database.url) },
      simulator: { webhookUrl: `http://127.0.0.1:${ports[0]}/v1/webhooks/stripe` },
    })
    await scene.books.webhooks({ duplicates: 1, shuffle: true })
    await Promise.all([startApi(0), startApi(1), startWorker(0), startWorker(1)])
    office = new Office(() => apis.map(({ shop }) => shop), scene.books)
  })
  afterAll(async () => {
    await Promise.all([...apis, ...workers].map((each) => each.stop()))
    await scene?.stop()
    await bouncer?.stop()
    await database?.drop()
  })

  async function expectAsBought(bought: { key: string; status: string; captured: number; refunded: number }[]) {
    const payments = await scene.books.payments()
    for (const { key, ...end } of bought) {
      const there = payments.filter((payment) => payment.metadata.key === key)
      expect(there.length, key).toBeLessThanOrEqual(1)
      const order = await scene.db
        .selectFrom('orders')
        .select('status')
        .where('attempt_key', '=', key)
        .executeTakeFirstOrThrow()
      const refunds = there.flatMap((payment) => payment.refunds)
      expect({
        status: order.status,
        captured: there[0]?.amount_received ?? 0,
        refunded: refunds.reduce((sum, { amount }) => sum + amount, 0),
      }).toEqual(end)
    }
  }

  async function expectAllSettled() {
    await until(async () => (await audit(scene)).length === 0, { timeoutMs: 60_000, what: 'workers to finish' }).catch(
      () => {}, // what is left is told here
    )
    await expectBooksInOrder(scene)
  }

  it('serve twins, repeats, 3-D Secure, refunds, holds and runs while processes are killed: once each', {
    timeout: 180_000,
  }, async () => {
    const survivors = [apis[0], workers[0]] as ServiceProcess[]
    const crowd = startShoppers(office)
    for (const point of ['checkout.claimed', 'settle.decided_paid', 'refund.sent', 'hold.asked']) {
      await apis[1]?.arm({ [point]: { do: 'kill' } })
      await apis[1]?.gone
      await startApi(1)
    }
    await workers[1]?.arm({ 'jobs.handled': { do: 'kill' } })
    await workers[1]?.gone
    await startWorker(1)
    await until(() => crowd.rounds() >= 3, { timeoutMs: 60_000, what: 'three purchases of each kind' })
    await crowd.end()

    expect(office.wrong).toEqual([])
    await expectAllSettled()
    await expectAsBought(crowd.bought)
    const alarming = survivors.flatMap(({ log }) => log).filter((line) => JSON.parse(line).level >= 50)
    expect(alarming).toEqual([])
  })

  it('share the few connections that PgBouncer has, and nothing gets to Postgres past it', async () => {
    const before = await bouncer.transactions()
    const replies = await Promise.all(Array.from({ length: 60 }, (_, i) => apis[i % 2]?.shop.checkout(`share-${i}`)))
    expect(new Set(replies.map((reply) => reply?.status))).toEqual(new Set([201]))
    const { rows } = await sql<{ connections: number }>`SELECT count(*)::int AS connections FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'checkout'`.execute(scene.db)
    expect(rows[0]?.connections).toBeGreaterThan(0)
    expect(rows[0]?.connections).toBeLessThanOrEqual(poolSize)
    expect(await bouncer.transactions()).toBeGreaterThan(before)
    await expectAllSettled()
  })

  it('outlive PgBouncer: nobody is charged twice, and what was cut off is finished', {
    timeout: 180_000,
  }, async () => {
    const crowd = startShoppers(office)
    for (const _ of [1, 2, 3]) {
      const enough = crowd.bought.length + 5
      await until(() => crowd.bought.length >= enough, { timeoutMs: 60_000, what: 'five more purchases' })
      await bouncer.crash()
    }
    await crowd.end()
    expect(office.wrong).toEqual([])
    await expectAllSettled()
    await expectAsBought(crowd.bought)
  })
})
