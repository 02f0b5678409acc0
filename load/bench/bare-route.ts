/** A bare Fastify route that takes the checkout's body and gives its answer: what HTTP alone costs. */
import { randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import { charge, paidBody } from '../baseline/order.ts'

const line = { sku: 'bench_1', name: 'Product', quantity: 1, unit_price: 1000, amount: 1000 }
const body = paidBody(
  {
    key: '',
    cart: { items: [], customer: { email: '' }, payment_method: '' },
    orderId: `ord_${randomUUID().replaceAll('-', '').slice(0, 26)}`,
    customerId: `cus_${randomUUID().replaceAll('-', '').slice(0, 26)}`,
    total: 1000,
    lines: [line],
    createdAt: new Date().toISOString(),
  },
  charge(),
)

const app = Fastify()
app.post('/v1/checkouts', async (_request, reply) =>
  reply.code(201).header('content-type', 'application/json; charset=utf-8').send(body),
)

const url = await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({ url })
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)))
process.on('disconnect', () => process.exit(1))
