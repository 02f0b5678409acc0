/** What the browser client knows of the contract, as TypeScript types: written from `openapi.yaml`, for a few operations. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'

interface Schema {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  $ref?: string
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  description?: string
}

interface Contract {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: Schema }> } }>>
  components: { schemas: Record<string, Schema> }
}

/** Of the contract's components; what they refer to comes along. */
const wanted = ['Attempt', 'CheckoutProblem', 'Order', 'ProductList']

/** The whole text of `src/web/client/contract.ts`. Throws where the contract lacks what the client needs. */
export async function clientTypes(): Promise<string> {
  const contract: Contract = parse(await readFile(join(import.meta.dirname, '../openapi.yaml'), 'utf8'))
  const body = contract.paths['/v1/checkouts']?.post?.requestBody?.content['application/json']?.schema
  if (body === undefined) throw new Error('the contract has no checkout')
  const shapes = new Map([['CheckoutBody', body]])
  for (const name of wanted) add(contract, shapes, name)
  const texts = [...shapes].map(([name, schema]) => `export type ${name} = ${typeOf(schema, '')}\n`)
  return `/** Written by \`npm run openapi\` from openapi.yaml; not by hand. Amounts are in minor units of the currency. */\n\n${texts.join('\n')}`
}

function add(contract: Contract, shapes: Map<string, Schema>, name: string): void {
  if (shapes.has(name)) return
  const schema = contract.components.schemas[name]
  if (schema === undefined) throw new Error(`the contract has no ${name}`)
  shapes.set(name, schema)
  for (const [, other] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    add(contract, shapes, other as string)
  }
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return union(schema.enum.map(literal), indent)
  if (schema.anyOf !== undefined)
    return union(
      schema.anyOf.map((each) => typeOf(each, indent)),
      indent,
    )
  if (Array.isArray(schema.type))
    return union(
      schema.type.map((type) => typeOf({ ...schema, type }, indent)),
      indent,
    )
  switch (schema.type) {
    case 'array':
      return arrayOf(typeOf(schema.items ?? {}, indent))
    case 'object':
      return objectType(schema, indent)
    case 'integer':
    case 'number':
      return 'number'
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type
    default:
      throw new Error(`no type for ${JSON.stringify(schema)}`)
  }
}

function objectType(schema: Schema, indent: string): string {
  if (schema.properties === undefined) {
    const values = schema.additionalProperties
    return `Record<string, ${typeof values === 'object' ? typeOf(values, indent) : 'unknown'}>`
  }
  const inner = `${indent}  `
  const lines = Object.entries(schema.properties).map(([name, property]) => {
    const note = property.description === undefined ? '' : `${inner}/** ${property.description} */\n`
    const mark = schema.required?.includes(name) ? '' : '?'
    return `${note}${inner}${name}${mark}: ${typeOf(property, inner)}\n`.replace(': \n', ':\n')
  })
  return `{\n${lines.join('')}${indent}}`
}

function arrayOf(item: string): string {
  return /^(\w+|\{[\s\S]*\})$/.test(item) ? `${item}[]` : `(${item})[]`
}

/** As the formatter breaks it. */
function union(members: string[], indent: string): string {
  const line = members.join(' | ')
  const width = 110 - indent.length
  return line.length <= width ? line : members.map((member) => `\n${indent}  | ${member}`).join('')
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}
