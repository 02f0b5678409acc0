/** The command line: what it does, what it says, and how it fails. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run.ts'
import { Client } from '../support/client.ts'
import { createEmptyDatabase } from '../support/database.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await startScene()
  await scene.books.webhooks({ drop: 1 })
})
afterAll(() => scene.stop())

interface Ran {
  code: number
  out: string
  err: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever is printed
  json: any
}

async function cli(args: string[], env: Record<string, string> = scene.env(), isTTY = false): Promise<Ran> {
  let out = ''
  let err = ''
  const code = await runCli(args, env, {
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text), isTTY, columns: 60 },
  })
  return { code, out, err, json: args.includes('--json') && code !== 1 && code !== 2 ? JSON.parse(out) : undefined }
}

const program = join(import.meta.dirname, '../../src/cli/main.ts')
const demo = ['--tenant', 'ten_demo']
const commands = [
  'migrate',
  'tenant create',
  'tenant list',
  'key create',
  'key list',
  'key revoke',
  'jobs list',
  'jobs requeue',
  'jobs discard',
  'reconcile report',
]

describe('help', () => {
  it('lists every command, those of a group, and what one takes', async () => {
    for (const args of [[], ['--help'], ['help']]) {
      const { code, out } = await cli(args, {})
      expect(code).toBe(0)
      for (const name of commands) expect(out).toContain(name)
      expect(out).toContain('Exit code: 0 done, 1 it could not be done, 2 the command line is wrong')
    }
    const group = await cli(['key', '--help'], {})
    expect([group.out.includes('key list'), group.out.includes('jobs list')]).toEqual([true, false])
    const { code, out } = await cli(['reconcile', 'report', '--help'], {})
    expect(code).toBe(0)
    for (const word of ['--tenant', '--from', '--to', '--json', 'Exit code']) expect(out).toContain(word)
  })

  it('tells of each command what it does and that it prints JSON', async () => {
    for (const name of commands) {
      const asked = await cli([...name.split(' '), '--help'], {})
      expect([name, asked.code, asked.err]).toEqual([name, 0, ''])
      expect(asked.out).toMatch(new RegExp(`^Usage: npm run --silent cli -- ${name} `))
      expect(asked.out).toContain('--json')
      expect((await cli(['help', ...name.split(' ')], {})).out).toBe(asked.out)
    }
  })

  it('is offered to whoever mistypes, with an exit code of its own', async () => {
    for (const [args, message] of [
      [['kee', 'list'], 'there is no command "kee list"'],
      [['key'], 'there is no command "key"; there is key create, key list, key revoke'],
      [['--version'], 'a command comes before --version'],
      [['key', 'list', '--tenant'], "Option '--tenant <value>' argument missing; key list --help tells more"],
      [['key', 'list'], '--tenant is missing'],
      [['key', 'list', '--tennant', 'x'], '--tennant'],
      [['key', 'list', ...demo, 'more'], '"more" is one word too many'],
      [['key', 'revoke', ...demo], 'KEY_ID is missing'],
      [['jobs', 'list', ...demo, '--state', 'gone'], '--state: ready, done, dead, discarded'],
      [['jobs', 'list', ...demo, '--limit', '0'], '--limit'],
      [['tenant', 'create', '--id', 'a b', '--name', 'x'], '--id'],
      [['key', 'create', ...demo, '--role', 'root', '--label', 'x'], '--role'],
      [['reconcile', 'report', ...demo, '--from', 'May', '--to', '2026-01-01'], '--from'],
      [['reconcile', 'report', ...demo, '--from', '2026-02-01', '--to', '2026-01-01'], '--from must be before --to'],
      [['reconcile', 'report', ...demo, '--from', '1970-01-01', '--to', '2026-01-01'], '366 days at most'],
    ] as const) {
      const { code, out, err } = await cli([...args])
      expect([args, code, out]).toEqual([args, 2, ''])
      expect(err).toMatch(/^error: .+\n$/)
      expect(err).toContain(message)
    }
  })
})

describe('migrate', () => {
  it('brings an empty database up to date, once; other commands ask for it first', async () => {
    const database = await createEmptyDatabase()
    const env = { DATABASE_URL: database.url }
    const early = await cli(['key', 'list', ...demo], env)
    expect([early.code, early.err]).toEqual([1, expect.stringContaining('run migrate first')])
    const first = await cli(['migrate', '--json'], env)
    expect(first.json.applied).toContain('0001_tenants.sql')
    expect((await cli(['migrate', '--json'], env)).json).toEqual({ applied: [] })
    expect((await cli(['migrate'], env)).out).toBe('Nothing to do.\n')
    await database.drop()
  })
})

describe('tenants and keys', () => {
  it('are made, work, are listed without the key, and are revoked', async () => {
    const tenant = ['--tenant', 'ten_new']
    const created = await cli(['tenant', 'create', '--id', 'ten_new', '--name', 'New shop', '--json'])
    expect(created.json).toEqual({ id: 'ten_new', name: 'New shop', connected_account: null })
    const { json: tenants } = await cli(['tenant', 'list', '--json'])
    expect(tenants).toContainEqual(created.json)
    const again = await cli(['tenant', 'create', '--id', 'ten_new', '--name', 'Other'])
    expect([again.code, again.err]).toEqual([1, 'error: there is a tenant ten_new already\n'])

    const { json } = await cli(['key', 'create', ...tenant, '--role', 'backend', '--label', 'shop', '--json'])
    expect(json.key).toMatch(/^sk_[\w-]{43}$/)
    const admin = await cli(['key', 'create', ...tenant, '--role', 'admin', '--label', 'Ada'])
    const adminKey = admin.out.split('\n')[0] as string
    expect((await new Client(scene.service.url ?? '', json.key).get('/v1/orders')).status).toBe(200)
    const list = await cli(['key', 'list', ...tenant])
    expect(list.out).toContain(json.id)
    expect(list.out).not.toContain(json.key)

    const revoked = await cli(['key', 'revoke', ...tenant, json.id])
    expect(revoked.out).toBe(`key ${json.id} is revoked\n`)
    const keys = (await cli(['key', 'list', ...tenant, '--json'])).json
    expect(keys.map((key: { revoked_at: string | null }) => key.revoked_at === null)).toEqual([false, true])
    const fresh = await scene.start()
    expect((await new Client(fresh.url ?? '', json.key).get('/v1/orders')).status).toBe(401)
    // Another tenant's key is none of this one's.
    expect((await cli(['key', 'revoke', ...demo, keys[1].id])).code).toBe(1)

    const audit = await new Client(fresh.url ?? '', adminKey).get('/v1/admin/audit')
    expect(audit.json.data.map(({ action }: { action: string }) => action)).toEqual([
      'revoke_key',
      'create_key',
      'create_key',
      'create_tenant',
    ])
    expect(audit.json.data[0].actor).toMatch(/^command line/)
  })

  it('of a tenant that is not there are refused', async () => {
    for (const args of [
      ['key', 'list'],
      ['jobs', 'list'],
      ['key', 'create', '--role', 'admin', '--label', 'x'],
    ]) {
      const { code, err } = await cli([...args, '--tenant', 'ten_none'])
      expect([code, err]).toEqual([1, 'error: there is no tenant ten_none; see tenant list\n'])
    }
  })
})

describe('jobs', () => {
  it('are listed, requeued and discarded by their ids', async () => {
    const { json: order } = await scene.shop.checkout(newKey())
    const id = `order_news:${order.id}:paid`
    await scene.db
      .updateTable('jobs')
      .set({ state: 'dead', last_error: 'order_missing' })
      .where('business_id', '=', `${order.id}:paid`)
      .execute()
    const list = await cli(['jobs', 'list', ...demo, '--state', 'dead', '--json'])
    expect(list.json).toMatchObject([{ id, state: 'dead', last_error: 'order_missing' }])
    expect((await cli(['jobs', 'list', ...demo, '--state', 'discarded'])).out).toBe('none\n')
    expect((await cli(['jobs', 'discard', ...demo, id])).out).toBe(`${id} is discarded\n`)
    expect((await cli(['jobs', 'discard', ...demo, id])).err).toBe('error: the job is discarded\n')
    expect((await cli(['jobs', 'requeue', ...demo, id, '--json'])).json).toMatchObject({
      id,
      state: 'ready',
      attempts: 0,
    })
    expect((await cli(['jobs', 'requeue', ...demo, 'order_news:none'])).code).toBe(1)
    const audit = await scene.admin.get(`/v1/admin/audit?order_id=${order.id}`)
    expect(audit.json.data.map(({ action }: { action: string }) => action)).toEqual(['requeue_job', 'discard_job'])
  })
})

describe('reconcile report', () => {
  const period = () => [
    '--from',
    new Date(Date.now() - 3_600_000).toISOString(),
    '--to',
    new Date(Date.now() + 3_600_000).toISOString(),
  ]

  it('says that all agrees, or what does not, also by its exit code', async () => {
    const { json: order } = await scene.shop.checkout(newKey())
    const agrees = await cli(['reconcile', 'report', ...demo, ...period()])
    expect([agrees.code, agrees.err]).toEqual([0, ''])
    expect(agrees.out).toMatch(/^\d+ matched, 0 missing here, 0 missing there, 0 differ in amount\n$/)
    await scene.books.control('POST', '/refunds', { payment_intent: order.payment.reference, amount: 50 })
    const differs = await cli(['reconcile', 'report', ...demo, ...period(), '--json'])
    expect(differs.code).toBe(3)
    expect(differs.json).toMatchObject({
      state: 'done',
      amount_differs: 1,
      findings: [{ kind: 'amount_differs', order_id: order.id, ours: 1250, theirs: 1200, currency: 'EUR' }],
    })
    const shown = await cli(['reconcile', 'report', ...demo, ...period()])
    expect(shown.out).toContain(order.id)
    expect((await scene.admin.get(`/v1/admin/reports/${differs.json.id}`)).json.amount_differs).toBe(1)
  })

  it('draws a bar for people who wait at a terminal, and only for them', async () => {
    const long = ['--from', '2026-01-01', '--to', '2026-01-10']
    const { err, out } = await cli(['reconcile', 'report', ...demo, ...long], scene.env(), true)
    expect(err).toContain('\r\u001b[K[###')
    expect(err.split('\r').every((line) => line.length <= 70)).toBe(true)
    expect(out).not.toContain('\u001b')
    expect((await cli(['reconcile', 'report', ...demo, ...long, '--json'], scene.env(), true)).err).toBe('')
  })

  it('that cannot be made says why', async () => {
    await scene.books.fault({ method: 'GET', path: '/v1/payment_intents', fault: 'error_before' })
    const { code, err } = await cli(['reconcile', 'report', ...demo, ...period()])
    await scene.books.noFaults()
    expect([code, err]).toEqual([1, expect.stringContaining('error: the payment provider does not answer')])
  })
})

describe('a command', () => {
  it('says in one line what is wrong with DATABASE_URL, and never repeats its password', async () => {
    const otherName = new URL(scene.databaseUrl)
    otherName.pathname = '/nothing_here'
    const encrypted = new URL(scene.databaseUrl)
    encrypted.searchParams.set('sslmode', 'verify-full')
    const silent = createServer((socket) => socket.end('this is no Postgres'))
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    for (const [url, message] of [
      ['postgres://user:topsecret@127.0.0.1:1/none', 'the database cannot be reached: connect ECONNREFUSED'],
      ['postgres://user:topsecret@no.such.host.invalid/x', 'the database cannot be reached: getaddrinfo'],
      ['mysql://user:topsecret@127.0.0.1/x', 'DATABASE_URL must start with postgres://'],
      ['postgres://user:top/secret@127.0.0.1/x', 'DATABASE_URL is no URL'],
      ['postgres://user:topsecret@127.0.0.1:99999/x', 'DATABASE_URL is no URL'],
      [otherName.href, 'the database refuses: database "nothing_here" does not exist'],
      [encrypted.href, 'the database cannot be used: The server does not support SSL'],
      [`postgres://user:topsecret@127.0.0.1:${port}/x`, 'the database cannot be'],
    ] as const) {
      for (const command of [['key', 'list', ...demo], ['migrate']]) {
        const { code, out, err } = await cli(command, { DATABASE_URL: url })
        expect([url, code, out]).toEqual([url, 1, ''])
        expect(err).toMatch(/^error: /)
        expect(err).toContain(message)
        for (const secret of ['secret', otherName.password]) if (secret !== '') expect(err).not.toContain(secret)
        expect(err).not.toMatch(/\n\s+at /)
      }
    }
    silent.close()
  })

  it('ends at once, and says so, where the database asks for a password that is not there; so does the service', async () => {
    const url = new URL(scene.databaseUrl)
    expect(url.password, 'the server of the tests asks for one').not.toBe('')
    url.password = ''
    const { PATH = '' } = process.env
    const env = { ...scene.env({ DATABASE_URL: url.href }), DATABASE_URL: url.href, PATH, HOME: '/nonexistent' }
    const service = join(import.meta.dirname, '../../src/main.ts')
    for (const args of [[program, 'key', 'list', ...demo], [program, 'migrate'], [service]]) {
      // Long before the server gives it up (authentication_timeout, 60 s).
      const ran = promisify(execFile)(process.execPath, args, { env, timeout: 45_000 })
      const { code, stdout, stderr } = await ran.then(
        (done) => ({ code: 0, ...done }),
        (failed: { code: number | null; stdout: string; stderr: string }) => failed,
      )
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^(error: )?the database asks for a password, and DATABASE_URL has none: [^\n]+\n$/)
    }
  })

  it('acts in the audit log as the account of the machine, also where no variable names it', async () => {
    const orderId = (await scene.shop.checkout(newKey())).json.id
    const env = { ...scene.env(), USER: '', LOGNAME: '', USERNAME: '' }
    const { code } = await cli(['jobs', 'discard', ...demo, `order_news:${orderId}:paid`], env)
    expect(code).toBe(0)
    const { json } = await scene.admin.get('/v1/admin/audit?action=discard_job')
    expect(json.data[0].actor).toBe(`command line (${userInfo().username})`)
  })

  it('runs as a program, with its result alone on standard output', async () => {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      [program, 'key', 'list', ...demo, '--json'],
      {
        env: { PATH: process.env.PATH, ...scene.env({ LOG_LEVEL: 'info' }) },
      },
    )
    expect(JSON.parse(stdout)).toHaveLength(3)
    expect(stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))).toEqual([])
  })

  it('whose reader goes away ends as if it had been read', async () => {
    const child = spawn(process.execPath, [program, 'key', 'list', ...demo], {
      env: { PATH: process.env.PATH, ...scene.env() },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.destroy()
    let err = ''
    child.stderr.on('data', (text) => (err += text))
    const [code] = await once(child, 'close')
    expect([code, err]).toEqual([0, ''])
  })
})
