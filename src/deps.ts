/** What flows and doors work with: a plain object, passed first. */
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { DigestSecrets } from './domain/digest.ts'
import type { Admission } from './flows/saga/admission.ts'
import type { AttemptWatch } from './flows/saga/attempt-watch.ts'
import type { ReplayCache } from './flows/saga/replay-cache.ts'
import type { Twins } from './flows/saga/twins.ts'
import type { NotificationReader, PaymentProvider } from './provider/port.ts'
import type { StandIn } from './provider/stand-in.ts'
import type { DatabasePool } from './runtime/database.ts'
import type { Gate } from './runtime/gate.ts'
import type { Mailer } from './runtime/mailer.ts'
import type { Metrics } from './runtime/metrics.ts'
import type { Tracing } from './runtime/tracing.ts'
import type { Claim, ClaimItem } from './store/attempts.ts'
import type { Settled, Settlement } from './store/orders.ts'
import type { Tables } from './store/tables.ts'

export interface Deps {
  config: Config
  log: Logger
  pool: DatabasePool
  db: Kysely<Tables>
  provider: PaymentProvider
  /** The simulator, where the demo charges it; undefined with a real provider. */
  standIn: StandIn | undefined
  notifications: NotificationReader
  digests: DigestSecrets
  /** Claim one attempt; those that arrive together share a statement and a commit. */
  claim(item: ClaimItem): Promise<Claim>
  /** Settle one order; likewise. */
  settle(item: Settlement): Promise<Settled>
  admission: Admission
  twins: Twins
  replays: ReplayCache
  watch: AttemptWatch
  /** Customers' calls to the provider go before those in the background. */
  gate: Gate
  metrics: Metrics
  /** Spans, where an endpoint for them is set. */
  tracing: Tracing
  /** Undefined: no mail is sent. */
  mailer: Mailer | undefined
}
