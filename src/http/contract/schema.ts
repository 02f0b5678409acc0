/** Words for the JSON Schemas of answers. They describe and check nothing at run time; open where clients should not break. */

export type Schema = Readonly<Record<string, unknown>>

export const text: Schema = { type: 'string' }
export const flag: Schema = { type: 'boolean' }
export const count: Schema = { type: 'integer', minimum: 0 }
export const moment: Schema = { type: 'string', format: 'date-time' }
export const amount: Schema = { type: 'integer', minimum: 0, description: 'minor units of the currency' }
export const currency: Schema = { type: 'string', pattern: '^[A-Z]{3}$', description: 'ISO 4217' }

/** An id of ours; see `domain/ids.ts`. */
export function id(prefix: string): Schema {
  return { type: 'string', pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$` }
}

export function words(...values: string[]): Schema {
  return values.length === 1 ? { const: values[0] } : { type: 'string', enum: values }
}

export function orNull(schema: Schema): Schema {
  const { enum: values, ...rest } = schema
  return {
    ...rest,
    type: [schema.type, 'null'],
    ...(Array.isArray(values) ? { enum: [...values, null] } : {}),
  }
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items }
}

/** Of any names, all of whose values are like this. */
export function mapOf(values: Schema): Schema {
  return { type: 'object', additionalProperties: values }
}

/** `maybe` holds the properties that may be missing. */
export function object(properties: Record<string, Schema>, maybe: Record<string, Schema> = {}): Schema {
  return { type: 'object', required: Object.keys(properties), properties: { ...properties, ...maybe } }
}

/** Shared under a name: what has a title stands once among the contract's components. */
export function named(title: string, schema: Schema): Schema {
  return { title, ...schema }
}

/** A cursor page; `title` names the kind of list. */
export function page(title: string, items: Schema): Schema {
  return named(title, object({ object: words('list'), data: listOf(items), ...cursorProperties }))
}

const cursorProperties = {
  has_more: flag,
  next_cursor: orNull({ ...text, description: 'for `cursor` of the next page; null on the last one' }),
}
