/** `jobs list`, `jobs requeue`, `jobs discard` */
import { discardByHand } from '../flows/jobs/job-decisions.ts'
import { auditedTransaction } from '../flows/operators/operator.ts'
import { newRunId } from '../runtime/run-id.ts'
import { type JobRow, jobId, listJobs, readJob, requeueJob, splitJobId } from '../store/jobs.ts'
import { type Command, CommandError, operatorFor, tenantOption, textOf, UsageError } from './command.ts'
import { table } from './table.ts'
import { needTenant } from './tenants.ts'

const states = ['ready', 'done', 'dead', 'discarded'] as const
const limitMax = 1000

export const jobsList: Command = {
  name: 'jobs list',
  about: "list a tenant's jobs",
  options: {
    tenant: tenantOption,
    state: { type: 'string', value: 'STATE', about: `${states.join(', ')}; all where it is not given` },
    limit: { type: 'string', value: 'N', about: `at most as many, up to ${limitMax}; 100 where it is not given` },
  },
  notes: ['Jobs of provider events that name no tenant are listed under the tenant "-".'],
  async run(context) {
    const state = states.find((each) => each === context.values.state)
    if (context.values.state !== undefined && state === undefined) throw new UsageError(`--state: ${states.join(', ')}`)
    const limit = Number(context.values.limit ?? 100)
    if (!Number.isInteger(limit) || limit < 1 || limit > limitMax) throw new UsageError(`--limit: 1 to ${limitMax}`)
    const db = await context.database()
    if (textOf(context, 'tenant') !== '-') await needTenant(db, textOf(context, 'tenant'))
    const jobs = await listJobs(db, textOf(context, 'tenant'), { limit, after: null }, state)
    const shown = jobs.slice(0, limit).map(shownJob)
    context.out.result(shown, [
      ...table(shown),
      ...(jobs.length > limit ? [`and more: --limit, up to ${limitMax}`] : []),
    ])
  },
}

export const jobsRequeue = decision(
  'requeue',
  'run a job again under its business id, from its first try on',
  requeueJob,
)
export const jobsDiscard = decision('discard', 'give a job up for good', discardByHand)

function decision(name: 'requeue' | 'discard', about: string, decide: typeof discardByHand): Command {
  return {
    name: `jobs ${name}`,
    about,
    options: { tenant: tenantOption },
    argument: { name: 'JOB_ID', about: 'as `jobs list` shows it: <topic>:<business id>' },
    async run(context) {
      const tenantId = textOf(context, 'tenant')
      const [topic, businessId] = splitJobId(context.argument)
      const db = await context.database()
      const before = await readJob(db, tenantId, topic, businessId)
      if (before === null) throw new CommandError(`the tenant ${tenantId} has no job ${context.argument}`)
      const by = operatorFor(context, tenantId, newRunId())
      const orderId = typeof before.payload.order_id === 'string' ? { orderId: before.payload.order_id } : {}
      const act = { action: `${name}_job`, target: { type: 'job' as const, id: jobId(before), ...orderId } }
      const job = await auditedTransaction(db, by, act, async (tx) => {
        const after = await decide(tx, tenantId, topic, businessId)
        if (after === null) {
          throw new CommandError(
            before.running ? 'the job runs this moment; try again shortly' : `the job is ${before.state}`,
          )
        }
        return after
      })
      context.out.result(shownJob(job), [`${jobId(job)} is ${job.state}`])
    },
  }
}

function shownJob(job: JobRow) {
  return {
    id: jobId(job),
    state: job.running ? 'running' : job.state,
    attempts: job.attempts,
    last_error: job.last_error,
    run_at: job.run_at.toISOString(),
    created_at: job.created_at.toISOString(),
  }
}
