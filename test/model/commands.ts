/**
 * What may happen to the service. A command draws what it does from the random numbers alone, so that a seed repeats it,
 * and tells the model what it has seen. Further kinds of events are further entries of `commands`.
 */

import type { FaultRule } from '../support/books.ts'
import { cart, type Reply } from '../support/client.ts'
import { backOffice } from './back-office.ts'
import type { Model, Variant } from './model.ts'
import type { Random } from './random.ts'
import { Stage } from './stage.ts'

export interface Step {
  /** For the reader of a failure. */
  text: string
  run(stage: Stage, model: Model): Promise<void>
}

export interface Command {
  weight: number
  draw(random: Random): Step
}

export const variants: readonly Variant[] = [
  { name: 'mug', body: cart(), total: 1250, card: 'good' },
  { name: 'tees', body: cart({ items: [{ sku: 'tee', quantity: 2 }] }), total: 5000, card: 'good' },
  {
    name: 'declined',
    body: cart({ payment_method: 'pm_card_chargeDeclined' }),
    total: 1250,
    card: 'declined',
  },
  {
    name: '3-D Secure',
    body: cart({ payment_method: 'pm_card_threeDSecure2Required' }),
    total: 1250,
    card: 'asks',
  },
  {
    name: 'hold',
    body: cart({ items: [{ sku: 'poster', quantity: 1 }], capture: 'manual' }),
    total: 900,
    card: 'good',
    hold: true,
  },
  { name: 'rare', body: cart({ items: [{ sku: 'rare', quantity: 2 }] }), total: 10_000, card: 'good', scarce: true },
  { name: 'cart', body: cart({ cart_id: 'cart-1' }), total: 1250, card: 'good', cart: 'cart-1' },
  {
    name: 'cart declined',
    body: cart({ cart_id: 'cart-1', payment_method: 'pm_card_chargeDeclined' }),
    total: 1250,
    card: 'declined',
    cart: 'cart-1',
  },
  {
    name: 'slow',
    body: cart({ payment_method: 'pm_card_sim_processing' }),
    total: 1250,
    card: 'slow',
  },
]

const keyCount = 14
/** Steps of the flows at which a process can die. */
const deaths = [
  'checkout.claimed',
  'checkout.charged',
  'settle.deciding_paid',
  'settle.decided_paid',
  'settle.deciding_needs_reconcile',
  'settle.decided_needs_reconcile',
  'settle.deciding_payment_failed',
  'settle.decided_canceled',
  'recovery.taking_over',
  'recovery.sending',
  'recovery.sent',
  'recovery.asked',
  'recovery.closed',
  'cancel.requested',
]

const customers: readonly Command[] = [
  { weight: 10, draw: (random) => alone(drawRequest(random)) },
  {
    weight: 6,
    draw(random) {
      const requests = Array.from({ length: random.integer(2, 6) }, () => drawRequest(random))
      // Mostly twins.
      const [first] = requests
      if (first !== undefined && random.chance(0.7)) {
        for (const request of requests) Object.assign(request, { key: first.key, variant: first.variant })
      }
      const cancels = random.chance(0.3) ? [drawCancel(random, first?.key)] : []
      const recovers = random.chance(0.4)
      return {
        text: `at once: ${[...requests, ...cancels].map(textOf).join(', ')}${recovers ? ', recovery' : ''}`,
        run: async (stage, model) => {
          await Promise.all([
            ...requests.map((request) => send(stage, model, request, false)),
            ...cancels.map((request) => giveUp(stage, model, request)),
            ...(recovers ? [stage.recover()] : []),
          ])
        },
      }
    },
  },
  {
    weight: 2,
    draw(random) {
      const request = drawCancel(random)
      return { text: textOf(request), run: (stage, model) => giveUp(stage, model, request) }
    },
  },
  {
    weight: 3,
    draw(random) {
      const outcome = random.pick(['succeed', 'succeed', 'fail'] as const)
      return {
        text: `every customer who is asked: ${outcome}`,
        async run(stage, model) {
          for (const payment of await stage.scene.books.payments()) {
            if (payment.status !== 'requires_action' && payment.status !== 'processing') continue
            model.attempt(payment.metadata.key ?? '').acted.add(outcome)
            await stage.scene.books.act(payment.id, outcome)
          }
        },
      }
    },
  },
  {
    weight: 5,
    draw(random) {
      const rules = Array.from({ length: random.integer(1, 2) }, () => drawFault(random))
      const seed = random.integer(1, 1_000_000)
      return {
        text: `faults: ${rules.map((rule) => `${rule.method} ${rule.path} ${rule.fault} ${rule.probability}`).join(', ')}`,
        run: async (stage, model) => {
          model.disturb()
          await stage.faults(rules, seed)
        },
      }
    },
  },
  { weight: 3, draw: () => ({ text: 'no faults', run: (stage) => stage.calm() }) },
  { weight: 4, draw: () => ({ text: 'recovery', run: (stage) => stage.recover() }) },
  { weight: 2, draw: () => ({ text: 'jobs', run: (stage) => stage.runJobs() }) },
  {
    weight: 3,
    draw(random) {
      const minutes = random.pick([1, 4, 6])
      return {
        text: `${minutes} minutes pass`,
        async run(stage, model) {
          model.timePasses()
          await stage.passTime(minutes)
        },
      }
    },
  },
  {
    weight: 4,
    draw(random) {
      const point = random.pick(deaths)
      return {
        text: `next at ${point} dies`,
        async run(stage, model) {
          model.disturb()
          stage.crashAt(point)
        },
      }
    },
  },
  {
    weight: 4,
    draw(random) {
      const point = random.pick(deaths)
      const request = { ...drawRequest(random), shop: random.integer(0, 1) }
      return {
        text: `${textOf(request)} freezes at ${point} past its lease`,
        async run(stage, model) {
          model.disturb()
          await stage.freezeAt(point, () => send(stage, model, request, false))
        },
      }
    },
  },
  { weight: 3, draw: () => ({ text: 'the frozen go on', run: (stage) => stage.thaw() }) },
  {
    // A new process takes seconds to start.
    weight: 0.3,
    draw(random) {
      const point = random.pick(deaths)
      const requests = Array.from({ length: 2 }, () => ({ ...drawRequest(random), shop: Stage.shops - 1 }))
      return {
        text: `the process is killed at ${point} during ${requests.map(textOf).join(', ')}`,
        async run(stage, model) {
          model.disturb()
          await stage.killAt(point, async () => {
            await Promise.all(requests.map((request) => send(stage, model, request, false)))
          })
        },
      }
    },
  },
]

export const commands: readonly Command[] = [...customers, ...backOffice(drawKey)]

interface Request {
  key: string
  /** Undefined: the customer gives up. */
  variant?: Variant
  shop: number
}

function drawRequest(random: Random): Request & { variant: Variant } {
  const number = random.integer(1, keyCount)
  // A key mostly comes with the same body.
  const usual = variants[number % variants.length] as Variant
  const variant = random.chance(0.2) ? random.pick(variants) : usual
  return { key: keyOf(random, number), variant, shop: random.integer(0, Stage.shops - 1) }
}

function drawKey(random: Random): string {
  return keyOf(random, random.integer(1, keyCount))
}

/** Each history has keys of its own: services remember the answers of those before, whose rows are gone. */
function keyOf({ seed }: Random, number: number): string {
  return `key-${seed}-${number}`
}

function drawCancel(random: Random, key = drawKey(random)): Request {
  return { key, shop: random.integer(0, Stage.shops - 1) }
}

function drawFault(random: Random): FaultRule {
  const fault = random.pick([
    'drop_before',
    'drop_after',
    'error_before',
    'error_after',
    'rate_limit',
    'hang',
  ] as const satisfies FaultRule['fault'][])
  return {
    method: random.pick(['POST', 'POST', 'GET', '*']),
    path: random.pick(['/v1/payment_intents', '/v1/payment_intents', '/v1/refunds', '/v1']),
    fault,
    probability: random.pick([0.3, 0.6, 1]),
    // Neither outlives a step by more than its own answer.
    ...(random.chance(0.5) ? { times: random.integer(1, 3) } : {}),
  }
}

function textOf({ key, variant, shop }: Request): string {
  return `${variant === undefined ? 'cancel' : variant.name} ${key} at ${shop}`
}

function alone(request: Request & { variant: Variant }): Step {
  return { text: textOf(request), run: async (stage, model) => void (await send(stage, model, request, true)) }
}

/** Sends a checkout and tells the model of its answer, which may be lost. */
export async function send(
  stage: Stage,
  model: Model,
  { key, variant, shop }: Request & { variant: Variant },
  isAlone: boolean,
): Promise<Reply | undefined> {
  const { end } = model.attempt(key)
  const crashes = stage.crashes
  const { disturbed } = stage
  const reply = await stage.answer(stage.shop(shop).checkout(key, variant.body))
  const crashed = stage.crashes > crashes
  if (reply !== undefined) {
    model.told(key, variant, reply, end, {
      disturbed: disturbed || stage.disturbed || crashed,
      crashed,
      alone: isAlone,
    })
  }
  return reply
}

async function giveUp(stage: Stage, model: Model, { key, shop }: Request): Promise<void> {
  model.attempt(key).gaveUp = true
  await stage.answer(stage.shop(shop).post(`/v1/checkouts/${key}/cancel`))
}
