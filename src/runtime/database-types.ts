import pg from 'pg'

const { INT8 } = pg.types.builtins
const INT8_ARRAY: number = 1016 // pg_type.dat; `builtins` does not name the array types

const parserOf = pg.types.getTypeParser as (oid: number, format?: string) => (text: string) => unknown
const parseInt8Array = parserOf(INT8_ARRAY)

/** As `pg` reads them, but int8 and int8[] as numbers. For one pool: the parsers of the `pg` module stay as they are. */
export const numericTypes: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format = 'text') => {
    if (format === 'text' && oid === INT8) return toSafeInteger
    if (format === 'text' && oid === INT8_ARRAY) return (text: string) => mapNested(parseInt8Array(text))
    return parserOf(oid, format)
  },
}

/** Throws for what a number cannot hold exactly: a sum of money must never be off by one unnoticed. */
function toSafeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`the bigint ${text} is beyond 2^53 and cannot be read exactly`)
  return value
}

function mapNested(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(mapNested)
  return typeof value === 'string' ? toSafeInteger(value) : value
}
