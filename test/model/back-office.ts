/** What comes from others than the customer: the provider's notifications, the shop's back office, operators. */
import type { Reply } from '../support/client.ts'
import type { Command } from './commands.ts'
import { type Model, Violation } from './model.ts'
import type { Random } from './random.ts'
import type { Stage } from './stage.ts'

export const backOffice = (drawKey: (random: Random) => string): readonly Command[] => [
  {
    weight: 2,
    draw(random) {
      const how = {
        drop: random.pick([0, 0, 0.5, 1]),
        duplicates: random.integer(0, 2),
        shuffle: random.chance(0.5),
        delay_ms: random.pick([0, 50]),
        seed: random.integer(1, 1_000_000),
      }
      return {
        text: `notifications: ${JSON.stringify(how)}`,
        run: (stage) => stage.scene.books.webhooks(how),
      }
    },
  },
  {
    weight: 2,
    draw(random) {
      const key = drawKey(random)
      return {
        text: `an operator has ${key} reconciled`,
        run: (stage, model) =>
          ask(stage, model, key, (order) => stage.scene.admin.post(`/v1/admin/orders/${order}/reconcile`)),
      }
    },
  },
  {
    weight: 2,
    draw(random) {
      const key = drawKey(random)
      const outcome = random.pick(['paid', 'payment_failed', 'canceled'] as const)
      return {
        text: `an operator decides that ${key} is ${outcome}`,
        async run(stage, model) {
          await ask(stage, model, key, (order) => {
            model.attempt(key).decided.add(outcome)
            return stage.scene.admin.post(`/v1/admin/orders/${order}/decide`, { outcome, reason: 'as it seems' })
          })
        },
      }
    },
  },
  {
    weight: 2,
    draw(random) {
      const key = drawKey(random)
      const [action, body] = random.pick([
        ['capture', {}],
        ['capture', { amount: 500 }],
        ['cancel', {}],
      ] as const)
      return {
        text: `the shop ends the hold of ${key}: ${action} ${JSON.stringify(body)}`,
        async run(stage, model) {
          await ask(stage, model, key, (order) => {
            model.attempt(key).holdEnds = true
            return stage.scene.backend.post(`/v1/orders/${order}/${action}`, body)
          })
        },
      }
    },
  },
  {
    weight: 3,
    draw(random) {
      const key = drawKey(random)
      const amount = random.pick([100, 700, undefined])
      const refundKey = `refund-${random.integer(1, 6)}`
      return {
        text: `the shop refunds ${amount ?? 'the rest'} of ${key} under ${refundKey}, twice at once`,
        async run(stage, model) {
          await ask(stage, model, key, async (order) => {
            const attempt = model.attempt(key)
            // What is in doubt counts as spent; more than all of it never goes back.
            attempt.refundsAsked += amount ?? Number.POSITIVE_INFINITY
            const refund = () =>
              stage.scene.backend.post(`/v1/orders/${order}/refunds`, amount === undefined ? {} : { amount }, {
                'idempotency-key': refundKey,
              })
            const [first, second] = await Promise.all([refund(), refund()])
            if (first.status === 201 && second.status === 201 && first.json.id !== second.json.id) {
              throw new Violation(`two refunds of one key: ${first.text} ${second.text}`)
            }
            return first
          })
        },
      }
    },
  },
]

/** Asks something about the order of a key, where it has one. The answer is never a fault of ours. */
async function ask(
  stage: Stage,
  _model: Model,
  key: string,
  request: (orderId: string) => Promise<Reply>,
): Promise<void> {
  const orderId = await stage.orderIdOf(key)
  if (orderId === undefined) return
  const crashes = stage.crashes
  const reply = await request(orderId)
  const mayFail = stage.crashes > crashes ? 500 : 503
  if (reply.status >= 500 && reply.status !== mayFail && reply.status !== 503) {
    throw new Violation(`a fault of ours about ${key}: ${reply.status} ${reply.text}`)
  }
}
