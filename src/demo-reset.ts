/** `npm run demo:reset`: forgets everything that the demo has kept, so that the next start begins anew. */
import { readdir, readFile, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { loadConfig } from './config.ts'

const { config } = loadConfig(process.env)
if (config.databaseUrl !== undefined) {
  console.error('DATABASE_URL is set: this only resets the embedded demo, never a database of yours.')
  process.exitCode = 1
} else if (await isRunning()) {
  console.error(`The demo in ${config.dataDir} is running. Stop it first.`)
  process.exitCode = 1
} else {
  // Where the server runs as another user, its files lie elsewhere and `postgres` is a link to them.
  const postgres = await realpath(join(config.dataDir, 'postgres')).catch(() => undefined)
  if (postgres !== undefined) await rm(postgres, { recursive: true })
  for (const name of await readdir(config.dataDir).catch(() => [])) {
    if (['postgres', 'digest-secret'].includes(name) || name.startsWith('simulator.jsonl')) {
      await rm(join(config.dataDir, name), { recursive: true, force: true })
    }
  }
  console.log(`The demo in ${config.dataDir} starts over.`)
}

async function isRunning(): Promise<boolean> {
  const lock = await readFile(join(config.dataDir, 'postgres/data/postmaster.pid'), 'utf8').catch(() => undefined)
  const pid = Number(lock?.split('\n')[0])
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
