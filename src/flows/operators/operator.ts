/** What an operator does, kept in the audit log: what is about to be done, and what came of it. */
import type { Kysely } from 'kysely'
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { checkpoint } from '../../runtime/checkpoint.ts'
import { transaction } from '../../runtime/database.ts'
import { type AuditTarget, beginAudit, endAudit, type Operator, recordAudit } from '../../store/operator-audit.ts'
import type { Tables } from '../../store/tables.ts'

export type { Operator }

interface Act {
  action: string
  target: AuditTarget
  /** A person's own words. */
  reason?: string
}

/** Does what has its effect outside Postgres, or in several transactions. `outcomeOf` names what came of it with a word. */
export async function audited<Result>(
  deps: Deps,
  by: Operator,
  act: Act,
  work: () => Promise<Result>,
  outcomeOf: (result: Result) => string,
): Promise<Result> {
  const entryId = await beginAudit(deps.db, by, act)
  await checkpoint('operator.begun')
  try {
    const result = await work()
    await checkpoint('operator.acted')
    await endAudit(deps.db, by.tenantId, entryId, outcomeOf(result))
    return result
  } catch (error) {
    await endAudit(deps.db, by.tenantId, entryId, error instanceof Problem ? error.code : 'failed')
    throw error
  }
}

/** Does what has its effect in Postgres alone, in one transaction with its entry. Work that throws leaves neither. */
export function auditedTransaction<Result>(
  db: Kysely<Tables>,
  by: Operator,
  act: Act,
  work: (tx: Parameters<Parameters<typeof transaction<Tables, Result>>[1]>[0]) => Promise<Result>,
): Promise<Result> {
  return transaction(db, async (tx) => {
    const result = await work(tx)
    await recordAudit(tx, by, { ...act, outcome: 'done' })
    return result
  })
}
