import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { HOST } from '../free-port.ts'

/** The connection string of the embedded server that another process runs in this folder; undefined where none answers. */
export async function runningEmbeddedPostgres(dataDir: string): Promise<string | undefined> {
  const home = join(dataDir, 'postgres')
  try {
    const [port, password] = await Promise.all([
      readFile(join(home, 'port'), 'utf8'),
      readFile(join(home, 'data/superuser-password'), 'utf8'),
      readFile(join(home, 'data/postmaster.pid'), 'utf8'),
    ])
    const url = `postgres://postgres:${encodeURIComponent(password.trim())}@${HOST}:${Number.parseInt(port, 10)}/postgres`
    return (await answers(url)) ? url : undefined
  } catch {
    return undefined
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}
