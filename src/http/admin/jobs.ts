/** The tenant's jobs, the dead ones above all, and those of its account's events that name no tenant; and what a person may
 * do about one. */
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { Problem } from '../../domain/problem.ts'
import { discardByHand } from '../../flows/jobs/job-decisions.ts'
import { auditedTransaction } from '../../flows/operators/operator.ts'
import {
  type EventViewer,
  type JobRow,
  jobId,
  listJobs,
  listNobodysJobs,
  readJob,
  readNobodysJob,
  requeueJob,
  splitJobId,
} from '../../store/jobs.ts'
import type { KeyOwner } from '../../store/tenants.ts'
import type { App } from '../app-type.ts'
import { callerOf } from '../auth.ts'
import * as contract from '../contract/admin.ts'
import { bodyOptional, closed, EmptyBody, IdParams } from '../input.ts'
import { listPage, pageFrom, pageProperties } from '../paging.ts'
import { type Admission, FilterFlag, operatorOf } from './operator.ts'

const JobQuery = closed({
  ...pageProperties,
  state: Type.Optional(
    Type.Union((['ready', 'done', 'dead', 'discarded'] as const).map((state) => Type.Literal(state))),
  ),
  unnamed: Type.Optional(FilterFlag),
})

const buttons = {
  requeue: { press: requeueJob, about: contract.requeueJob },
  discard: { press: discardByHand, about: contract.discardJob },
}

export function adminJobRoutes(app: App, deps: Deps, preParsing: Admission): void {
  app.get(
    '/v1/admin/jobs',
    { preParsing, schema: { ...contract.listJobs, querystring: JobQuery } },
    async (request) => {
      const page = pageFrom(request.query)
      const { state, unnamed } = request.query
      const caller = callerOf(request)
      const jobs =
        unnamed === 'true'
          ? await listNobodysJobs(deps.db, viewerOf(deps, caller), page, state)
          : await listJobs(deps.db, caller.tenantId, page, state)
      return listPage(jobs, page, jobView, jobId)
    },
  )

  app.get('/v1/admin/jobs/:id', { preParsing, schema: { ...contract.readJob, params: IdParams } }, async (request) => {
    return jobView(await visibleJob(deps, callerOf(request), request.params.id))
  })

  for (const [name, { press, about }] of Object.entries(buttons)) {
    app.post(
      `/v1/admin/jobs/:id/${name}`,
      { preParsing, preValidation: bodyOptional, schema: { ...about, params: IdParams, body: EmptyBody } },
      async (request) => {
        const by = operatorOf(request)
        const before = await visibleJob(deps, callerOf(request), request.params.id)
        const orderId = typeof before.payload.order_id === 'string' ? { orderId: before.payload.order_id } : {}
        const act = { action: `${name}_job`, target: { type: 'job' as const, id: jobId(before), ...orderId } }
        return auditedTransaction(deps.db, by, act, async (tx) => {
          const job = await press(tx, before.tenant_id, before.topic, before.business_id)
          if (job === null) {
            throw new Problem('job_state_conflict', {
              detail: name === 'requeue' ? 'The job runs this moment.' : 'The job runs this moment, or has ended.',
              members: { state: before.state, running: before.running },
              ...orderId,
            })
          }
          return jobView(job)
        })
      },
    )
  }
}

async function visibleJob(deps: Deps, caller: KeyOwner, id: string): Promise<JobRow> {
  const [topic, businessId] = splitJobId(id)
  const job =
    (await readJob(deps.db, caller.tenantId, topic, businessId)) ??
    (await readNobodysJob(deps.db, viewerOf(deps, caller), topic, businessId))
  if (job === null) throw new Problem('not_found')
  return job
}

function viewerOf({ notifications }: Deps, { tenantId, connectedAccount }: KeyOwner): EventViewer {
  return { provider: notifications.provider, tenantId, account: connectedAccount }
}

function jobView(job: JobRow) {
  return {
    id: jobId(job),
    object: 'job' as const,
    topic: job.topic,
    business_id: job.business_id,
    payload: job.payload,
    state: job.state,
    running: job.running,
    attempts: job.attempts,
    last_error: job.last_error,
    run_at: job.run_at.toISOString(),
    created_at: job.created_at.toISOString(),
    finished_at: job.finished_at?.toISOString() ?? null,
  }
}
