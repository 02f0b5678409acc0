import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPool, type DatabasePool, isDatabaseUnavailable } from '../../src/runtime/database.ts'
import { startThrowawayPostgres, type ThrowawayPostgres } from '../support/throwaway-postgres.ts'
import { until } from '../support/until.ts'

let server: ThrowawayPostgres
let pool: DatabasePool

beforeAll(async () => {
  server = await startThrowawayPostgres({ migrated: false })
  pool = createPool(server.url, { max: 4, applicationName: 'test' })
  await pool.query('create table facts (id int primary key)')
})

afterAll(async () => {
  await pool.end()
  await server.stop()
})

test.for([
  { outage: 'a restart', first: 1, down: (target: ThrowawayPostgres) => target.restart() },
  { outage: 'a kill', first: 1_000_001, down: (target: ThrowawayPostgres) => target.kill9().then(target.restart) },
])('the pool works again after $outage of the server under load, and no confirmed commit is lost', async (example) => {
  const confirmed: number[] = []
  const failed: unknown[] = []
  let next = example.first
  let over = false
  const write = async () => {
    while (!over) {
      const id = next++
      try {
        await pool.query('insert into facts values ($1)', [id])
        confirmed.push(id)
      } catch (error) {
        failed.push(error)
        await until(() => pool.query('select 1'))
      }
    }
  }
  const writers = Promise.all(Array.from({ length: 4 }, write))
  await until(() => confirmed.length > 20, { what: 'writes before the outage' })
  await example.down(server)
  const before = confirmed.length
  await until(() => confirmed.length > before + 20, { what: 'writes after the outage' })
  over = true
  await writers

  expect(failed.length).toBeGreaterThan(0)
  expect(failed.filter((error) => !isDatabaseUnavailable(error))).toEqual([])
  const { rows } = await pool.query<{ id: number }>('select id from facts where id >= $1', [example.first])
  const kept = new Set(rows.map(({ id }) => id))
  expect(confirmed.filter((id) => !kept.has(id))).toEqual([])
})
