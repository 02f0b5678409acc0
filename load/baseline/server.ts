/** The baseline as a process of its own. */
import Fastify from 'fastify'
import pg from 'pg'
import type { Cart } from './order.ts'
import { checkout } from './saga.ts'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 })
const app = Fastify()

app.post<{ Body: Cart }>('/v1/checkouts', async (request, reply) => {
  const key = request.headers['idempotency-key']
  if (typeof key !== 'string') return reply.code(400).send({ code: 'idempotency_key_missing' })
  const { status, body } = await checkout(pool, key, request.body)
  return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(body)
})

const url = await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({ url })
process.once('SIGTERM', () => void app.close().then(() => pool.end().then(() => process.exit(0))))
process.on('disconnect', () => process.exit(1))
