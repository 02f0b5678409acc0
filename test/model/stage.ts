/**
 * The service as the property test drives it: two of it in this process and one in a process of its own, on one database
 * and one simulator. Everything that can go wrong on the way is kept apart here, so that commands read as what happens.
 */
import { sql } from 'kysely'
import { armCheckpoints } from '../../src/runtime/checkpoint.ts'
import { endHolds } from '../../src/workers/end-holds.ts'
import { recoverOrders } from '../../src/workers/recover-orders.ts'
import { runJobs } from '../../src/workers/run-jobs.ts'
import { settleRefunds } from '../../src/workers/settle-refunds.ts'
import { audit } from '../support/audit.ts'
import type { FaultRule } from '../support/books.ts'
import type { Client, Reply } from '../support/client.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { Violation } from './model.ts'

/** Short, so that doubt arises soon and may soon be asked about; the lease is long, and ended by hand. */
const settings = {
  PROVIDER_TIMEOUT_MS: '300',
  CHECKOUT_BUDGET_MS: '800',
  IDEMPOTENCY_WAIT_MS: '900',
  RECONCILE_AFTER_MS: '40',
  ORDER_EXPIRY_MINUTES: '8',
}
/** A list is searched up to 15 minutes after the last send, so no order is made to look older than that. */
const ageMaxMinutes = 14

export class Stage {
  readonly scene: Scene
  readonly #shops: Client[]
  #process: ServiceProcess
  #faultsAreOn = false
  #crashPoint: string | undefined
  readonly #frozen: (() => void)[] = []
  readonly #ofFrozen: Promise<unknown>[] = []
  /** Crashes so far; a step in which this grows has been struck by one. */
  crashes = 0

  static async set(): Promise<Stage> {
    const scene = await startScene({ settings })
    const other = await scene.start(settings)
    return new Stage(scene, [scene.shop, scene.shop.at(other.url)], await startServiceProcess(scene.env(settings)))
  }

  private constructor(scene: Scene, shops: Client[], process: ServiceProcess) {
    this.scene = scene
    this.#shops = shops
    this.#process = process
  }

  /** As many as there are services. */
  static readonly shops = 3

  shop(index: number): Client {
    return this.#shops[index] ?? this.#process.shop
  }

  get disturbed(): boolean {
    return this.#faultsAreOn || this.#crashPoint !== undefined || this.#frozen.length > 0
  }

  /** Undefined where the answer was lost with the process that would have given it. */
  async answer(request: Promise<Reply>): Promise<Reply | undefined> {
    try {
      return await request
    } catch {
      await this.#process.gone
      return undefined
    }
  }

  async faults(rules: FaultRule[], seed: number): Promise<void> {
    this.#faultsAreOn = true
    await this.scene.books.control('POST', '/faults', { rules, seed })
  }

  /** Nothing is made to go wrong any more. */
  async calm(): Promise<void> {
    await this.thaw()
    armCheckpoints(undefined)
    this.#crashPoint = undefined
    await this.scene.books.noFaults()
    await this.scene.books.webhooks({})
    this.#faultsAreOn = false
    await this.#haveProcess()
  }

  /** Whoever of this process passes the point next dies there, holding what it holds. */
  crashAt(point: string): void {
    this.#crashPoint = point
    armCheckpoints((reached) => {
      if (reached !== point) return
      armCheckpoints(undefined)
      this.#crashPoint = undefined
      this.crashes += 1
      throw new Error(`crashed at ${point}`)
    })
  }

  /** Whoever passes the point during `work` stops there until `thaw`, past its lease. */
  async freezeAt(point: string, work: () => Promise<unknown>): Promise<void> {
    this.#crashPoint = undefined
    const reached = new Promise<void>((resolve) => {
      armCheckpoints((each) => {
        if (each !== point) return
        armCheckpoints(undefined)
        resolve()
        return new Promise<void>((thaw) => {
          this.#frozen.push(thaw)
        })
      })
    })
    const done = work()
    done.catch(() => {})
    this.#ofFrozen.push(done)
    await Promise.race([reached, done])
    armCheckpoints(undefined)
    await this.endLeases()
  }

  /** All that were frozen go on; rejects with what was wrong about it. */
  async thaw(): Promise<void> {
    for (const thaw of this.#frozen.splice(0)) thaw()
    await Promise.all(this.#ofFrozen.splice(0))
  }

  /** The process of its own dies at the point, or at the end of `during`. */
  async killAt(point: string, during: () => Promise<void>): Promise<void> {
    await this.#process.arm({ [point]: { do: 'kill' } })
    this.crashes += 1
    await during()
    await this.#process.kill()
    await this.#haveProcess()
  }

  /** Everything that is open is due now, and is driven on once. */
  async recover(): Promise<void> {
    const { deps } = this.scene.service
    await this.#makeDue()
    for (const work of [recoverOrders, endHolds, settleRefunds]) while ((await work(deps)) > 0);
  }

  async runJobs(): Promise<void> {
    await sql`UPDATE jobs SET run_at = clock_timestamp() WHERE state = 'ready'`.execute(this.scene.db)
    await runJobs(this.scene.service.deps)
  }

  async passTime(minutes: number): Promise<void> {
    const by = sql`${minutes} * interval '1 minute'`
    await sql`
      WITH older AS (
        UPDATE orders SET created_at = created_at - ${by}, expires_at = expires_at - ${by},
          last_send_before = last_send_before - ${by}, next_ask_at = next_ask_at - ${by}
        WHERE status IN ('pending', 'requires_action', 'needs_reconcile')
          AND created_at > now() - interval '1 minute' * ${ageMaxMinutes} + ${by}
        RETURNING tenant_id, attempt_key)
      UPDATE attempts a SET lease_expires_at = lease_expires_at - ${by} FROM older
      WHERE a.tenant_id = older.tenant_id AND a.key = older.attempt_key`.execute(this.scene.db)
  }

  /** Nothing that was sent is still under way: absence counts. */
  async endSending(): Promise<void> {
    const { db } = this.scene
    await sql`UPDATE orders SET last_send_before = least(last_send_before, now() - interval '10 minutes 1 second')`.execute(
      db,
    )
    await sql`UPDATE refunds SET last_send_before = least(last_send_before, now() - interval '10 minutes 1 second')`.execute(
      db,
    )
  }

  async expireAll(): Promise<void> {
    await sql`UPDATE orders SET expires_at = least(expires_at, now())`.execute(this.scene.db)
  }

  /** What is left for recovery: orders, refunds, endings of holds. */
  async whatIsOpen(): Promise<string[]> {
    const { rows } = await sql<{ open: string }>`
      SELECT concat_ws(' ', 'order', attempt_key, status, reconcile_reason) AS open FROM orders
        WHERE status IN ('pending', 'requires_action', 'needs_reconcile')
      UNION ALL SELECT concat_ws(' ', 'refund', attempt_key, doubt) FROM refunds WHERE status = 'pending'
      UNION ALL SELECT concat_ws(' ', 'hold', order_id, action, doubt) FROM hold_endings WHERE ended_at IS NULL`.execute(
      this.scene.db,
    )
    return rows.map(({ open }) => open)
  }

  async endLeases(): Promise<void> {
    await sql`UPDATE attempts SET lease_expires_at = clock_timestamp() - interval '1 ms' WHERE state = 'running'`.execute(
      this.scene.db,
    )
    await this.#makeDue()
  }

  async orderIdOf(key: string): Promise<string | undefined> {
    const row = await this.scene.db
      .selectFrom('orders')
      .select('order_id')
      .where('attempt_key', '=', key)
      .executeTakeFirst()
    return row?.order_id
  }

  async statusOf(key: string): Promise<string | undefined> {
    const row = await this.scene.db
      .selectFrom('orders')
      .select('status')
      .where('attempt_key', '=', key)
      .executeTakeFirst()
    return row?.status
  }

  /** What must never be found; at the end, nothing at all. */
  async audit({ atRest }: { atRest: boolean }): Promise<void> {
    const findings = (await audit(this.scene)).filter(({ severity }) => atRest || severity === 'wrong')
    if (findings.length > 0) throw new Violation(`the audit found ${JSON.stringify(findings, null, 1)}`)
  }

  /** As before the first order. */
  async clear(): Promise<void> {
    await this.calm()
    await this.scene.books.control('POST', '/reset')
    await sql`TRUNCATE orders, attempts, carts, customers, order_transitions, stock_movements, provider_calls,
                ledger_transfers, jobs, provider_events, refunds, hold_endings, emails, merchant_events, audit_entries`.execute(
      this.scene.db,
    )
    await sql`UPDATE products SET available = CASE sku WHEN 'rare' THEN 5 ELSE 100000 END`.execute(this.scene.db)
  }

  async strike(): Promise<void> {
    armCheckpoints(undefined)
    await this.#process.stop()
    await this.scene.stop()
  }

  async #makeDue(): Promise<void> {
    const { db } = this.scene
    await sql`UPDATE orders SET next_ask_at = least(next_ask_at, clock_timestamp())
              WHERE status IN ('pending', 'requires_action', 'needs_reconcile')`.execute(db)
    await sql`UPDATE refunds SET next_ask_at = least(next_ask_at, clock_timestamp()) WHERE status = 'pending'`.execute(
      db,
    )
    await sql`UPDATE hold_endings SET next_ask_at = least(next_ask_at, clock_timestamp()) WHERE ended_at IS NULL`.execute(
      db,
    )
  }

  async #haveProcess(): Promise<void> {
    if (await isGone(this.#process)) this.#process = await startServiceProcess(this.scene.env(settings))
  }
}

function isGone(process: ServiceProcess): Promise<boolean> {
  return Promise.race([process.gone.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))])
}
