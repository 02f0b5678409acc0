import { chmod, mkdir, mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder for a run, with a folder `logs` in it. Other users can enter it: Postgres does not run as root. */
export async function runFolder(name: string): Promise<string> {
  const path = await mkdtemp(join(await realpath(tmpdir()), `${name}-`))
  await chmod(path, 0o755)
  await mkdir(join(path, 'logs'))
  return path
}
