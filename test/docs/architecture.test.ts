/** What ARCHITECTURE.md says points where, and what it says is absent. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

interface Source {
  file: string
  text: string
  /** Files of ours, and whether only types are taken. */
  imports: { from: string; typesOnly: boolean }[]
}

const sources: Source[] = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => {
    const file = `src/${name.replaceAll('\\', '/')}`
    const text = readFileSync(join(root, file), 'utf8')
    const imports = [...text.matchAll(/^(?:import|export)( type)? [^;]*? from '(\.[^']+)'/gms)].map(
      ([, type, path]) => ({
        from: normalize(join(dirname(file), path ?? '')),
        typesOnly: type !== undefined,
      }),
    )
    return { file, text, imports }
  })

/** `src/flows`; of a file that stands alone, the file. */
function partOf(file: string): string {
  return file.split('/').slice(0, 2).join('/')
}

/** By part: the parts that it may import. `types` of the provider's port: what its words are, not how it is asked. */
const arrows: Record<string, readonly string[]> = {
  'src/domain': ['types'],
  'src/runtime': [],
  'src/simulator': [],
  'src/web': [],
  'src/store': ['src/domain', 'src/runtime', 'types'],
  'src/provider': ['src/domain', 'src/runtime'],
  'src/flows': ['src/store', 'src/domain', 'src/runtime', 'src/deps.ts', 'src/config.ts', 'port'],
  'src/http': ['src/flows', 'src/store', 'src/domain', 'src/runtime', 'src/deps.ts', 'port'],
  'src/workers': ['src/flows', 'src/store', 'src/domain', 'src/runtime', 'src/deps.ts'],
}

describe('an import', () => {
  it.each(Object.entries(arrows))('of %s goes to nothing but %j', (part, allowed) => {
    const wrong = sources
      .filter(({ file }) => partOf(file) === part)
      .flatMap(({ file, imports }) =>
        imports
          .filter(({ from, typesOnly }) => {
            if (partOf(from) === part) return false
            if (from === 'src/provider/port.ts')
              return !(allowed.includes('port') || (typesOnly && allowed.includes('types')))
            return !allowed.includes(partOf(from))
          })
          .map(({ from }) => `${file} -> ${from}`),
      )
    expect(wrong).toEqual([])
  })

  it('finds each part with files in it', () => {
    for (const part of Object.keys(arrows))
      expect(
        sources.some(({ file }) => partOf(file) === part),
        part,
      ).toBe(true)
  })
})

function filesWith(what: RegExp, except: RegExp): string[] {
  return sources.filter(({ file, text }) => !except.test(file) && what.test(text)).map(({ file }) => file)
}

describe('what is absent', () => {
  it('SQL stands in the store, but for the question whether the database is there', () => {
    const sql =
      /\b(SELECT (?!1')|INSERT INTO |UPDATE \w+ SET |DELETE FROM |selectFrom\(|insertInto\(|updateTable\(|deleteFrom\()/
    expect(filesWith(sql, /^src\/store\/|^src\/runtime\/migrate\.ts$/)).toEqual([])
  })

  it('the stripe package is used by the adapter and the simulator alone', () => {
    expect(filesWith(/from 'stripe'/, /^src\/(provider|simulator)\//)).toEqual([])
  })

  it('the environment is read by entry points, and handed on to child processes', () => {
    const readers =
      /^src\/(main|simulator\/main|cli\/main|demo-reset|simulator-process|runtime\/embedded\/guarded)\.ts$/
    expect(filesWith(/process\.env/, readers)).toEqual([])
  })

  it('nothing waits for a notification of the database, or holds a lock beyond its transaction', () => {
    expect(filesWith(/\b(LISTEN|NOTIFY) |pg_advisory_lock\b/, /^$/)).toEqual([])
  })
})
