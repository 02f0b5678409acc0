/** The storm as a program: clean against a sound service, and not to be fooled by broken books. */
import { spawn } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Page } from '../../load/storm/page.ts'
import { type Scene, startScene } from '../support/scene.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

let scene: Scene
let folder: string

beforeAll(async () => {
  scene = await startScene({
    settings: {
      ROLES: 'api,worker',
      PROVIDER_TIMEOUT_MS: '1500',
      CHECKOUT_BUDGET_MS: '4000',
      IDEMPOTENCY_WAIT_MS: '6000',
      IDEMPOTENCY_LEASE_SECONDS: '5',
      RECONCILE_AFTER_MS: '200',
      RECOVERY_INTERVAL_MS: '100',
    },
  })
  folder = await temporaryFolder('storm-test')
})
afterAll(async () => {
  await scene.stop()
  await rm(folder, { recursive: true })
})

test('a short storm with faults leaves books that agree', { timeout: 180_000 }, async () => {
  const json = join(folder, 'page.json')
  const html = join(folder, 'page.html')
  const flags = [
    '--recovery-limit',
    '60',
    '--duration',
    '3',
    '--connections',
    '8',
    '--repeats',
    '0.3',
    '--conflicts',
    '0.3',
    '--twins',
    '1',
  ]
  const mix = [
    '--latency',
    '20,200:0.1',
    '--faults',
    'drop_before:0.03,drop_after:0.03,error_after:0.03,rate_limit:0.03',
  ]

  const { code, output } = await storm(...flags, ...mix, '--json', json, '--html', html)

  expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('audit: clean') })
  const page = JSON.parse(await readFile(json, 'utf8')) as Page
  const counts = Object.fromEntries(page.classes.map((each) => [each.class, each.count]))
  expect(counts.first).toBeGreaterThan(0)
  expect((counts.replay ?? 0) + (counts.wait ?? 0)).toBeGreaterThan(0)
  expect(counts).not.toHaveProperty('error')
  expect(counts).not.toHaveProperty('unexpected')
  expect(page.orders.paid).toBeGreaterThan(0)
  expect(await readFile(html, 'utf8')).toContain('<polyline')
})

test('a storm of its own starts what it needs', { timeout: 180_000 }, async () => {
  const { code, output } = await program('--duration', '1', '--connections', '2', '--recovery-limit', '60')
  expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('audit: clean') })
})

test('an audit of tampered books exits 1 and tells the history of the key', { timeout: 120_000 }, async () => {
  const key = 'a-key-whose-books-are-tampered-with'
  expect((await scene.shop.checkout(key)).status).toBe(201)
  const { order_id } = await scene.db
    .selectFrom('orders')
    .select('order_id')
    .where('attempt_key', '=', key)
    .executeTakeFirstOrThrow()
  expect((await storm('--audit-only')).code).toBe(0)

  await sql`UPDATE ledger_transfers SET amount = amount + 1 WHERE order_id = ${order_id}`.execute(scene.db)

  const { code, output } = await storm('--audit-only')
  expect(code).toBe(1)
  expect(output).toContain('AUDIT: VIOLATED')
  expect(output).toContain(`history of key ${key}, order ${order_id}`)
  expect(output).toMatch(/provider +\{"id":"pi_/)
})

test('a command line that makes no sense is refused with what would', async () => {
  const { code, output } = await program('--scenario', 'drizzle')
  expect(code).toBe(2)
  expect(output).toContain('there is no scenario "drizzle": storm, stampede')
})

function storm(...flags: string[]): Promise<{ code: number | null; output: string }> {
  const where = ['--url', scene.service.url ?? '', '--database', scene.databaseUrl, '--simulator', scene.simulatorUrl]
  return program(...where, ...flags)
}

async function program(...flags: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [resolve(import.meta.dirname, '../../load/storm.ts'), ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const code = new Promise<number | null>((done) => child.once('exit', done))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { code: await code, output: out + err }
}
