/**
 * With TEST_PGBOUNCER every service of a test reaches Postgres through PgBouncer; the test's own look at rows does not.
 * Without it both are the same.
 */
import { inject } from 'vitest'

/** HOST:PORT of a server, and of the PgBouncer in front of it. */
const poolers = new Map<string, string>()

/** Whether this run is behind PgBouncer. */
export function isPooled(): boolean {
  return inject('poolerHost') !== ''
}

/** From now on services that are to reach the server of `url` reach it through the PgBouncer at `poolerHost`. */
export function poolFor(url: string, poolerHost: string): void {
  poolers.set(new URL(url).host, poolerHost)
}

/** How a service gets to the database of `url`. URLs of anything else stay as they are. */
export function pooled(url: string): string {
  if (!isPooled() || !URL.canParse(url)) return url
  const other = new URL(url)
  const shared = new URL(inject('adminUrl'))
  const pooler = other.host === shared.host ? inject('poolerHost') : poolers.get(other.host)
  if (pooler === undefined) return url
  other.host = pooler
  return other.href
}
