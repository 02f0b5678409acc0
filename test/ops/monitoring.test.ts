/** What watches the service fits what the service shows, and what people are told to read is there. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { cart } from '../support/client.ts'
import { newKey, type Scene, startScene } from '../support/scene.ts'
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook: string }
}
const rules = (parse(read('ops/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
)
const dashboard = JSON.parse(read('ops/grafana/dashboards/checkout.json')) as {
  panels: { title: string; targets?: { expr: string }[] }[]
}
const panels = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
const runbook = read('docs/runbook.md')

/** As GitHub names the headings of a page. */
const headings = [...runbook.matchAll(/^## (.+)$/gm)].map(([, heading = '']) =>
  heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-'),
)

describe('a scrape', () => {
  let scene: Scene
  let worker: ServiceProcess
  /** Label names of each metric, by the name that a query uses. */
  const shown = new Map<string, Set<string>>()
  beforeAll(async () => {
    scene = await startScene({ settings: { METRICS_PORT: '0' } })
    worker = await startServiceProcess(scene.env({ ROLES: 'worker', METRICS_PORT: '0' }))
    const key = newKey()
    await scene.shop.checkout(key)
    await scene.shop.checkout(key)
    await scene.shop.checkout(key, cart({ payment_method: 'pm_card_mastercard' }))
    await scene.books.fault({ method: 'POST', path: '/v1/payment_intents', fault: 'error_after', times: 1 })
    await scene.shop.checkout(newKey())
    const url = worker.operationsUrl
    await until(async () => (await scrape(url)).includes('checkout_job_runs_total{'), {
      what: 'the worker to run a job',
    })
    for (const text of await Promise.all([scrape(scene.service.operationsUrl), scrape(url)])) {
      for (const [name, labels] of metricsIn(text)) {
        const known = shown.get(name) ?? new Set()
        for (const label of labels) known.add(label)
        shown.set(name, known)
      }
    }
  })
  afterAll(async () => {
    await worker.stop()
    await scene.stop()
  })

  it('is the same on the port of its own as on that of the API', async () => {
    const [own, api] = await Promise.all([scrape(scene.service.operationsUrl), scrape(scene.service.url)])
    expect([...metricsIn(own).keys()]).toEqual([...metricsIn(api).keys()])
  })

  it('of a worker alone has its own counts and the figures of all, and nothing that a customer could call', async () => {
    const text = await scrape(worker.operationsUrl)
    expect(text).toMatch(/^checkout_worker_runs_total\{worker="run-jobs",failed="false"\} [1-9]/m)
    expect(text).toMatch(/^checkout_jobs\{state="due"\} \d/m)
    expect(text).toMatch(/^checkout_database_up 1$/m)
    const statuses = await Promise.all(
      ['/healthz', '/readyz', '/v1/products', '/v1/webhooks/stripe'].map(
        async (path) => (await fetch(`${worker.operationsUrl}${path}`)).status,
      ),
    )
    expect(statuses).toEqual([200, 200, 404, 404])
  })

  it.each([
    ...rules.map(({ alert, expr }) => ['alert', alert, expr] as const),
    ...panels.map(({ title, expr }) => ['panel', title, expr] as const),
  ])('has every metric and label of the %s %s', (_kind, _name, expr) => {
    const used = [...expr.matchAll(/\b((?:checkout|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)]
    expect(used.length + Number(expr.startsWith('up'))).toBeGreaterThan(0)
    for (const [, name = '', selector = ''] of used) {
      expect([...shown.keys()]).toContain(name)
      const labels = shown.get(name) ?? new Set()
      // A figure of which there is nothing has no labels yet; `job` and `instance` are Prometheus's own.
      const asked = [...selector.matchAll(/(\w+)\s*(?:=|!=|=~|!~)\s*"/g)].map(([, label = '']) => label)
      if (labels.size > 0) expect([...labels, 'job', 'instance']).toEqual(expect.arrayContaining(asked))
    }
  })

  it('while the database is away says so, and shows no figures of before', async () => {
    expect(await scrape(scene.service.operationsUrl)).toMatch(/^checkout_open_orders\{/m)
    const text = await scene.service.deps.metrics.text(null)
    expect(text).toMatch(/^checkout_database_up 0$/m)
    expect(text).not.toMatch(/^checkout_open_orders\{/m)
    expect(text).toMatch(/^checkout_requests_total\{/m)
  })
})

describe('an alert', () => {
  it.each(rules)('$alert has a severity, a sentence, and its part of the runbook, which names it', (rule) => {
    expect(['critical', 'warning']).toContain(rule.labels.severity)
    expect(rule.annotations.summary).not.toBe('')
    const [file, heading = ''] = rule.annotations.runbook.split('#')
    expect(file).toBe('docs/runbook.md')
    expect(headings).toContain(heading)
    const part = runbook.split(/^## /m)[headings.indexOf(heading) + 1]
    expect(part).toContain(`\`${rule.alert}\``)
  })

  it('has a name of its own, and the runbook has no part without one', () => {
    const names = rules.map(({ alert }) => alert)
    expect(new Set(names).size).toBe(names.length)
    const linked = new Set(rules.map(({ annotations }) => annotations.runbook.split('#')[1]))
    expect(headings.filter((heading) => !linked.has(heading))).toEqual([])
  })
})

const promtool = spawnSync('promtool', ['--version']).error === undefined
describe.skipIf(!promtool)(`promtool${promtool ? '' : ' is not installed (Debian: apt install prometheus)'}`, () => {
  it.each([
    ['check', 'rules', 'alerts.yml'],
    ['check', 'config', 'prometheus.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ])('%s %s %s', (...args) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, {
      cwd: join(root, 'ops/prometheus'),
      encoding: 'utf8',
    })
    expect(`${status}\n${status === 0 ? '' : stdout + stderr}`).toBe('0\n')
  })
})

async function scrape(url: string | undefined): Promise<string> {
  const answer = await fetch(`${url}/metrics`)
  expect(answer.status).toBe(200)
  return answer.text()
}

/** https://prometheus.io/docs/instrumenting/exposition_formats/: names by which samples can be asked for, with their labels. */
function metricsIn(text: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? []
    if (name !== undefined) {
      const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((ending) => name + ending) : [name]
      for (const each of names) found.set(each, new Set())
      continue
    }
    const [, sample = '', labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? []
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) found.get(sample)?.add(label)
  }
  return found
}
