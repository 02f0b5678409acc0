/** The contract, OpenAPI 3.1, as this page needs it: a list of operations in which no reference to an answer or header is left. */
import { readable, type Schema } from './schema.ts'

export interface Media {
  type: string
  schema: Schema
  examples: readonly Example[]
}

export interface Example {
  name: string
  value: unknown
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
  description: string
}

export interface Header {
  name: string
  required: boolean
  description: string
}

export interface Answer {
  status: string
  description: string
  headers: readonly Header[]
  body: Media | undefined
  /** What the codes among its problems mean; empty where it is no problem. */
  codes: readonly { code: string; meaning: string }[]
}

export interface Operation {
  id: string
  method: string
  path: string
  tag: string
  summary: string
  description: string
  parameters: readonly Parameter[]
  body: (Media & { required: boolean }) | undefined
  answers: readonly Answer[]
  /** Whose keys may call it; empty: nobody needs one. */
  roles: readonly string[]
}

export interface Contract {
  title: string
  description: string
  tags: readonly { name: string; description: string }[]
  roles: readonly { name: string; description: string }[]
  operations: readonly Operation[]
}

interface RawMedia {
  schema: Schema
  examples?: Record<string, { value: unknown }>
}

interface RawAnswer {
  $ref?: string
  description: string
  headers?: Record<string, { $ref: string }>
  content?: Record<string, RawMedia>
}

interface RawOperation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters?: (Omit<Parameter, 'description'> & { description?: string })[]
  requestBody?: { required?: boolean; content: Record<string, RawMedia> }
  responses: Record<string, RawAnswer>
  security: Record<string, unknown>[]
}

interface Document {
  info: { title: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, RawOperation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, RawAnswer>
    headers: Record<string, Header>
    securitySchemes: Record<string, { description: string }>
  }
}

/** Rejects where the service does not give its contract. */
export async function loadContract(): Promise<Contract> {
  const response = await fetch('/openapi.json')
  if (!response.ok) throw new Error(`/openapi.json was answered with ${response.status}`)
  return readContract((await response.json()) as Document)
}

function readContract(document: Document): Contract {
  const { info, tags, paths, components } = document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => readOperation(document, path, method.toUpperCase(), raw)),
  )
  const order = tags.map(({ name }) => name)
  operations.sort((a, b) => order.indexOf(a.tag) - order.indexOf(b.tag))
  return {
    title: info.title,
    description: info.description,
    tags,
    roles: Object.entries(components.securitySchemes).map(([name, { description }]) => ({ name, description })),
    operations,
  }
}

function readOperation(document: Document, path: string, method: string, raw: RawOperation): Operation {
  const { schemas } = document.components
  const { operationId, tags, summary, description = '', parameters = [], requestBody, responses, security } = raw
  const body = requestBody && readMedia(schemas, requestBody.content)
  return {
    id: operationId,
    method,
    path,
    tag: tags[0] ?? '',
    summary,
    description,
    parameters: inOrder(
      parameters.map((each) => ({ description: '', ...each, schema: readable(each.schema, schemas) })),
    ),
    body: body && { ...body, required: requestBody?.required === true },
    answers: Object.entries(responses).map(([status, answer]) => readAnswer(document, status, answer)),
    roles: security.flatMap((each) => Object.keys(each)),
  }
}

function readAnswer({ components }: Document, status: string, raw: RawAnswer): Answer {
  const shared = raw.$ref === undefined ? undefined : components.responses[nameIn(raw.$ref)]
  const { description, headers = {}, content = {} } = shared ?? raw
  const body = readMedia(components.schemas, content)
  return {
    status,
    description,
    headers: Object.entries(headers).flatMap(([name, { $ref }]) => {
      const header = components.headers[nameIn($ref)]
      return header === undefined ? [] : [{ ...header, name }]
    }),
    body,
    codes: body?.type === 'application/problem+json' ? body.examples.map(readCode) : [],
  }
}

function readCode({ name, value }: Example): Answer['codes'][number] {
  return { code: name, meaning: (value as { title: string }).title }
}

function readMedia(schemas: Record<string, Schema>, content: Record<string, RawMedia>): Media | undefined {
  const [first] = Object.entries(content)
  if (first === undefined) return undefined
  const [type, { schema, examples = {} }] = first
  return {
    type,
    schema: readable(schema, schemas),
    examples: Object.entries(examples).map(([name, { value }]) => ({ name, value })),
  }
}

/** Those of the path first, as they are read from left to right. */
function inOrder(parameters: Parameter[]): Parameter[] {
  const places = ['path', 'header', 'query']
  return parameters.toSorted((a, b) => places.indexOf(a.in) - places.indexOf(b.in))
}

function nameIn($ref: string): string {
  return $ref.split('/').at(-1) ?? ''
}
