/** JSON Schemas of the contract, made readable: references followed, words instead of keywords. */

export interface Schema {
  $ref?: string
  /** The name under which the contract shares it; set here where a reference has been followed. */
  name?: string
  type?: string | readonly string[]
  description?: string
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  anyOf?: readonly Schema[]
  allOf?: readonly Schema[]
  enum?: readonly unknown[]
  const?: unknown
  default?: unknown
  format?: string
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
}

/** Without references, `allOf` and `anyOf`, which this contract uses for additions, choices of words and "or null" only. */
export function readable(schema: Schema, shared: Readonly<Record<string, Schema>>): Schema {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return { ...readable(shared[name] ?? {}, shared), name }
  }
  const { allOf, anyOf, ...rest } = schema
  if (allOf !== undefined) return allOf.map((each) => readable(each, shared)).reduce(added, rest)
  if (anyOf !== undefined) return { ...rest, ...oneOf(anyOf.map((each) => readable(each, shared))) }
  return {
    ...rest,
    ...(rest.items && { items: readable(rest.items, shared) }),
    ...(rest.properties && {
      properties: Object.fromEntries(
        Object.entries(rest.properties).map(([name, each]) => [name, readable(each, shared)]),
      ),
    }),
    ...(typeof rest.additionalProperties === 'object' && {
      additionalProperties: readable(rest.additionalProperties, shared),
    }),
  }
}

function added(schema: Schema, more: Schema): Schema {
  const properties = { ...schema.properties }
  for (const [name, each] of Object.entries(more.properties ?? {})) properties[name] = { ...properties[name], ...each }
  return { ...schema, ...more, properties, required: [...(schema.required ?? []), ...(more.required ?? [])] }
}

function oneOf(choices: readonly Schema[]): Schema {
  if (choices.every((choice) => 'const' in choice)) {
    return { type: 'string', enum: choices.map((choice) => choice.const) }
  }
  const real = choices.filter(({ type }) => type !== 'null')
  const [first] = real
  if (first === undefined || real.length > 1) return { type: real.flatMap(({ type }) => type ?? []) }
  return real.length === choices.length ? first : { ...first, type: [...typesOf(first), 'null'] }
}

function typesOf({ type }: Schema): readonly string[] {
  return type === undefined ? [] : typeof type === 'string' ? [type] : type
}

/** e.g. `string or null`, `list of objects`. */
export function typeInWords(schema: Schema): string {
  if ('const' in schema) return JSON.stringify(schema.const)
  const words = typesOf(schema).map((type) => {
    if (type === 'array') return schema.items === undefined ? 'list' : `list of ${plural(typeInWords(schema.items))}`
    if (type === 'string' && schema.format === 'date-time') return 'time'
    return type
  })
  return words.length === 0 ? 'any value' : words.join(' or ')
}

function plural(word: string): string {
  return /^\w+$/.test(word) ? `${word}s` : word
}

/** What a value must be besides its type, a phrase each. */
export function limitsInWords(schema: Schema): string[] {
  const { format, minimum, maximum, minLength, maxLength, minItems, maxItems, maxProperties } = schema
  return [
    format === undefined || format === 'date-time' ? undefined : format,
    format === 'date-time' ? 'RFC 3339' : undefined,
    between(minimum, maximum, ''),
    between(minLength, maxLength, ' characters'),
    between(minItems, maxItems, ' items'),
    between(undefined, maxProperties, ' members'),
    schema.default === undefined ? undefined : `${JSON.stringify(schema.default)} unless given`,
  ].filter((phrase) => phrase !== undefined)
}

function between(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (least !== undefined && most !== undefined) return `${figure(least)} to ${figure(most)}${unit}`
  if (most !== undefined) return `at most ${figure(most)}${unit}`
  if (least !== undefined) return `at least ${figure(least)}${unit}`
  return undefined
}

/** Digits in groups of three, apart by a narrow space that does not break. */
function figure(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, '\u202f')
}
