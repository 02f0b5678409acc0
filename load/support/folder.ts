import { rmSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface RunFolder {
  path: string
  /** For logs of processes. */
  logs: string
  /** It is not removed at the end. */
  keep(): void
}

/** A new folder for a run, removed when this process exits. Other users can enter it: Postgres does not run as root. */
export async function runFolder(name: string): Promise<RunFolder> {
  const path = await mkdtemp(join(await realpath(tmpdir()), `${name}-`))
  await chmod(path, 0o755)
  const logs = join(path, 'logs')
  await mkdir(logs)
  const remove = () => rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  process.once('exit', remove)
  return { path, logs, keep: () => void process.off('exit', remove) }
}

/** So that a run that is interrupted still cleans up; its processes end with it. */
export function exitOnSignals(): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => process.exit(code))
  }
}
