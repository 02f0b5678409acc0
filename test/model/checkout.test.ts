/**
 * Random histories against the contract. First everything may go wrong, and nothing wrong may come of it; then nothing
 * goes wrong any more, and everything has to come to its end.
 *
 * A failure names its seed: MODEL_SEED=<seed> MODEL_RUNS=1 repeats the same steps (races among them fall out anew).
 * MODEL_SECONDS=600 looks for more.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { commands, type Step, send, variants } from './commands.ts'
import { Model, type Variant, Violation } from './model.ts'
import { Random } from './random.ts'
import { Stage } from './stage.ts'

const firstSeed = Number(process.env.MODEL_SEED ?? 1)
const runsMax = Number(process.env.MODEL_RUNS ?? Number.POSITIVE_INFINITY)
const seconds = Number(process.env.MODEL_SECONDS ?? 30)
const stepsARun = 30

let stage: Stage
beforeAll(async () => {
  stage = await Stage.set()
})
afterAll(() => stage.strike())

it(
  'whatever happens, no order is wrong; and once it stops happening, every order ends',
  async () => {
    const endsAt = Date.now() + seconds * 1000
    let runs = 0
    for (; runs < runsMax && (runs === 0 || Date.now() < endsAt); runs++) {
      await stage.clear()
      await history(firstSeed + runs)
    }
    if (process.env.MODEL_SECONDS) console.log(`${runs} histories from seed ${firstSeed} on`)
    expect(runs).toBeGreaterThan(0)
  },
  (seconds + 120) * 1000,
)

async function history(seed: number): Promise<void> {
  const random = new Random(seed)
  const steps: Step[] = Array.from({ length: stepsARun }, () => random.weighted(commands).draw(random))
  const model = new Model()
  const trace: string[] = []
  const doing = async (text: string, work: () => Promise<unknown>) => {
    trace.push(text)
    try {
      return await work()
    } catch (error) {
      const steps = trace.map((each, index) => `${index + 1}. ${each}`).join('\n')
      const told = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
      throw new Error(`${told}\nMODEL_SEED=${seed} MODEL_RUNS=1 repeats these steps:\n${steps}`, { cause: error })
    }
  }
  for (const step of steps) {
    await doing(step.text, async () => {
      await step.run(stage, model)
      model.compare(await stage.scene.books.payments())
      await stage.audit({ atRest: false })
    })
  }
  await doing('calm: every client repeats until it is told an end', () => comeToAnEnd(model))
  await doing('at rest', () => judgeEnd(model))
}

async function comeToAnEnd(model: Model): Promise<void> {
  await stage.calm()
  for (const [key, { owner }] of model.attempts()) {
    for (const variant of owner === undefined ? variants : [owner]) await repeat(model, key, variant)
  }
  // Time does the rest: what was sent has arrived, and who has not acted is not waited for.
  model.timePasses()
  let open: string[] = []
  const isOver = async () => {
    for (const payment of await stage.scene.books.payments()) {
      if (payment.status !== 'processing') continue
      model.attempt(payment.metadata.key ?? '').acted.add('succeed')
      await stage.scene.books.act(payment.id, 'succeed')
    }
    await stage.endSending()
    await stage.expireAll()
    await stage.endLeases()
    await stage.recover()
    await stage.runJobs()
    open = await stage.whatIsOpen()
    return open.length === 0
  }
  await until(isOver, { what: 'everything to end' }).catch((error: unknown) => {
    throw new Violation(`left open: ${open.join(', ')}`, { cause: error })
  })
  await stage.runJobs()
}

/** As a client does: until the answer is an end, or tells it to wait for somebody else. */
async function repeat(model: Model, key: string, variant: Variant): Promise<void> {
  for (let tries = 0; tries < 3; tries++) {
    await stage.endLeases()
    const reply = await send(stage, model, { key, variant, shop: tries % Stage.shops }, true)
    if (reply !== undefined && reply.status !== 202 && reply.status !== 503) return
  }
}

async function judgeEnd(model: Model): Promise<void> {
  await stage.audit({ atRest: true })
  const payments = await stage.scene.books.payments()
  model.compare(payments)
  for (const payment of payments) {
    const isOver = ['succeeded', 'canceled', 'requires_capture'].includes(payment.status)
    if (!isOver) throw new Violation(`a payment that could still succeed was left: ${JSON.stringify(payment)}`)
  }
  for (const [key, { owner, end }] of model.attempts()) {
    const status = await stage.statusOf(key)
    if (status === undefined || owner === undefined) continue
    if (!model.mayEndAs(key, status)) throw new Violation(`${key} ${owner.name} has ended as ${status}`)
    const must = model.mustEndAs(key)
    if (must !== undefined && must !== status) throw new Violation(`${key} ${owner.name} is ${status}, not ${must}`)
    // Whatever was told before is told again, byte for byte.
    for (let shop = 0; shop < Stage.shops; shop++) {
      const reply = await send(stage, model, { key, variant: owner, shop }, true)
      if (reply === undefined || reply.status === 202) throw new Violation(`${key} is not over: ${reply?.text}`)
      if (end !== undefined && reply.text !== end.text) throw new Violation(`${key} is told anew: ${reply.text}`)
    }
  }
}
