/** All rows about an order that the handling of notifications reads or writes: read for a snapshot, and put back as they were. */
import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../../src/store/tables.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of many tables, as JSON
export type Row = Record<string, any>
/** By table. */
export type Rows = Readonly<Record<string, readonly Row[]>>

/** Whose rows: an order with a SKU of its own, and the events that were delivered about it. */
export interface Owner {
  order: string
  sku: string
  events: readonly string[]
}

/** Where each table's rows of an order are found; `$o` orders, `$s` their SKUs, `$e` events. The order comes first. */
const tables: Readonly<Record<string, string>> = {
  orders: 'order_id = ANY ($o)',
  attempts: `object_id = ANY ($o) OR object_id IN (SELECT refund_id FROM refunds WHERE order_id = ANY ($o))`,
  stock_movements: 'order_id = ANY ($o)',
  products: 'sku = ANY ($s)',
  ledger_transfers: 'order_id = ANY ($o)',
  order_transitions: 'order_id = ANY ($o)',
  refunds: 'order_id = ANY ($o)',
  disputes: 'order_id = ANY ($o)',
  hold_endings: 'order_id = ANY ($o)',
  provider_events: 'event_id = ANY ($e)',
  jobs: `payload->>'order_id' = ANY ($o) OR (topic = 'provider_event' AND business_id = ANY ($e))`,
}

function where(table: string): string {
  return (tables[table] ?? '').replaceAll('$o', 'p_orders').replaceAll('$s', 'p_skus').replaceAll('$e', 'p_events')
}

/** Once per database. */
export async function prepareRows(db: Kysely<Tables>): Promise<void> {
  const names = Object.keys(tables)
  const given = 'p_orders text[], p_skus text[], p_events text[]'
  const read = names.map((name) => `SELECT '${name}', to_jsonb(r) FROM ${name} r WHERE ${where(name)}`)
  await sql
    .raw(`CREATE FUNCTION rows_of(${given}) RETURNS TABLE (of_table text, of_row jsonb)
          LANGUAGE sql AS $$ ${read.join(' UNION ALL ')} $$`)
    .execute(db)
  // What is found by way of another table goes before that.
  const forget = [...names].reverse().map((name) => `DELETE FROM ${name} WHERE ${where(name)};`)
  const write = names.map(
    (name) => `INSERT INTO ${name} SELECT * FROM jsonb_populate_recordset(NULL::${name}, p_rows->'${name}');`,
  )
  const early = forget.filter((statement) => statement.includes('DELETE FROM attempts'))
  const rest = forget.filter((statement) => !early.includes(statement))
  await sql
    .raw(`CREATE FUNCTION put_rows(${given}, p_rows jsonb) RETURNS void
          LANGUAGE plpgsql AS $$ BEGIN ${[...early, ...rest, ...write].join(' ')} END $$`)
    .execute(db)
}

/** In the owners' order. */
export async function readRows(db: Kysely<Tables>, owners: readonly Owner[]): Promise<Rows[]> {
  const { rows } = await sql<{ of_table: string; of_row: Row }>`
    SELECT * FROM rows_of(${owners.map(({ order }) => order)}, ${owners.map(({ sku }) => sku)},
                          ${owners.flatMap(({ events }) => events)})`.execute(db)
  const byOwner = owners.map(() => Object.fromEntries(Object.keys(tables).map((name) => [name, [] as Row[]])))
  const places = new Map<string, number>()
  for (const [place, { order, sku, events }] of owners.entries()) {
    for (const name of [order, sku, ...events]) places.set(name, place)
  }
  const byRefund = new Map(
    rows.filter(({ of_table }) => of_table === 'refunds').map(({ of_row }) => [of_row.refund_id, of_row.order_id]),
  )
  for (const { of_table, of_row } of rows) {
    const { order_id, object_id, sku, event_id, business_id, payload } = of_row
    const name =
      of_table === 'products'
        ? sku
        : of_table === 'provider_events'
          ? event_id
          : of_table === 'jobs'
            ? (payload.order_id ?? business_id)
            : of_table === 'attempts'
              ? (byRefund.get(object_id) ?? object_id)
              : order_id
    const place = places.get(name)
    if (place === undefined) throw new Error(`a row of nobody in ${of_table}: ${JSON.stringify(of_row)}`)
    byOwner[place]?.[of_table]?.push(of_row)
  }
  return byOwner
}

/** The owners' rows become these, whatever they were. */
export async function putRows(db: Kysely<Tables>, items: readonly { owner: Owner; rows: Rows }[]): Promise<void> {
  const all: Record<string, Row[]> = {}
  for (const { rows } of items) {
    for (const [name, of] of Object.entries(rows)) all[name] = [...(all[name] ?? []), ...of]
  }
  await sql`SELECT put_rows(${items.map(({ owner }) => owner.order)}, ${items.map(({ owner }) => owner.sku)},
                            ${items.flatMap(({ owner }) => owner.events)}, ${JSON.stringify(all)}::jsonb)`.execute(db)
}
