/** What pages for people name is there: files, tests, settings, commands, routes, metrics. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { sectionOf } from '../support/markdown.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', 'ARCHITECTURE.md', 'load/README.md', ...filesOf('docs', '.md')]

function filesOf(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
}

const sources = ['src', 'migrations', 'load', 'scripts']
  .flatMap((folder) => ['.ts', '.sql'].flatMap((ending) => filesOf(folder, ending)))
  .map(read)
  .join('\n')

/** What stands in backticks, code blocks left out. */
function named(text: string): string[] {
  return [...text.replace(/^```.*?^```/gms, '').matchAll(/`([^`\n]+)`/g)].map(([, name]) => name ?? '')
}

describe.each(pages)('%s', (page) => {
  const text = read(page)

  it('names files that are there', () => {
    const folders = /^(src|test|docs|migrations|load|scripts|ops)\/[\w./-]*$/
    const missing = named(text).filter((name) => folders.test(name) && !existsSync(join(root, name)))
    const links = [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, link]) => link ?? '')
    const dead = links.filter((link) => !existsSync(join(root, dirname(page), link)))
    expect({ missing, dead }).toEqual({ missing: [], dead: [] })
  })

  it('names settings, commands, routes and metrics that exist', () => {
    const names = named(text)
    const settings = names.filter((name) => /^[A-Z]+(_[A-Z]+)+$/.test(name) && !/^(UPDATE|SKIP)/.test(name))
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const commands = [...text.matchAll(/npm run ([a-z:]+)/g)].map(([, name]) => name ?? '')
    const metrics = names.filter((name) => /^checkout_[a-z_]+$/.test(name))
    expect({
      settings: settings.filter((name) => !sources.includes(name.replace(/_FILE$/, ''))),
      commands: commands.filter((name) => scripts[name] === undefined),
      metrics: metrics.filter((name) => !sources.includes(name)),
      routes: names.filter((name) => /^(GET|POST|PUT|DELETE) \/v1\//.test(name)).filter((name) => !isRoute(name)),
    }).toEqual({ settings: [], commands: [], metrics: [], routes: [] })
  })
})

const { paths } = parse(read('openapi.yaml')) as { paths: Record<string, Record<string, unknown>> }

/** `…` and a query stand for more than is said; a parameter may have any name. */
function isRoute(name: string): boolean {
  const [method = '', path = ''] = name.split(' ')
  const said = (path.split('?')[0] ?? '').replace(/\{\w+\}/g, '{}')
  if (said.includes('…')) return true
  return Object.entries(paths).some(
    ([route, methods]) => route.replace(/\{\w+\}/g, '{}') === said && methods[method.toLowerCase()] !== undefined,
  )
}

/** Each as `file` › name, a line of its own. */
function testsThatAreGone(text: string): string[] {
  const tests = [...text.matchAll(/^ *- `(test\/[^`]+)` › (.+)$/gm)]
  expect(tests.length).toBeGreaterThan(0)
  return tests.filter(([, file = '', name = '']) => !isTest(read(file), name)).map(([line]) => line)
}

describe('docs/security.md', () => {
  it('is shown by tests that exist', () => {
    expect(testsThatAreGone(read('docs/security.md'))).toEqual([])
  })
})

describe('docs/guarantees.md', () => {
  const page = read('docs/guarantees.md')
  const promises = [...page.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading ?? '')

  it('has promises', () => {
    expect(promises.length).toBeGreaterThan(25)
  })

  it.each(promises)('%s: says what holds it and shows it by tests that exist', (promise) => {
    const section = sectionOf(page, promise)
    const heldBy = /\*\*Held by\.\*\*(.*?)\n- \*\*Shown by\.\*\*/s.exec(section)?.[1] ?? ''
    expect(heldBy.trim()).not.toBe('')
    const words = named(heldBy).filter((name) => /^[a-z]+(_[a-z]+)*$/.test(name))
    expect(words.filter((word) => !sources.includes(word))).toEqual([])

    expect(testsThatAreGone(section)).toEqual([])
  })
})

/** Whether the file has a test of just that name. */
function isTest(source: string, name: string): boolean {
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${name}${quote},`))
}
