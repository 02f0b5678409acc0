import { chmod, mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder that other users can enter, as a project's data folder normally is: run by root, an embedded Postgres
 * would otherwise move out of it. */
export async function temporaryFolder(name: string): Promise<string> {
  const path = await mkdtemp(join(await realpath(tmpdir()), `${name}-`))
  await chmod(path, 0o755)
  return path
}
