/** What stands in many places of the contract, once. */
import { isDeepStrictEqual } from 'node:util'
import { type OpenApi, operationsOf } from './openapi-document.ts'

const seconds = { type: 'string', pattern: '^[1-9][0-9]*$' }

/** By the name in `contract/operation.ts`; with a question mark where it may be missing. */
const headers: Record<string, { component: string; required: boolean; schema: object; description: string }> = {
  'X-Request-Id': {
    component: 'RequestId',
    required: true,
    schema: { type: 'string' },
    description: 'Names this request in logs; for questions about it.',
  },
  Location: {
    component: 'Location',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
    description: 'Where what was created is found.',
  },
  'Retry-After': {
    component: 'RetryAfter',
    required: true,
    schema: seconds,
    description: 'Seconds after which the same request with the same key is worth sending again.',
  },
  'Retry-After?': {
    component: 'RetryAfterIfItHelps',
    required: false,
    schema: seconds,
    description: 'Seconds after which the same request with the same key is worth sending again, where it is.',
  },
  'Idempotent-Replayed': {
    component: 'IdempotentReplayed',
    required: false,
    schema: { const: 'true' },
    description: 'The answer was given before, to this request or its twin.',
  },
}

/** Replaces the names of headers by what they mean; every answer has a request id. */
export function shareHeaders(document: OpenApi): void {
  document.components.headers = Object.fromEntries(
    Object.values(headers).map(({ component, ...header }) => [component, header]),
  )
  for (const { responses } of operationsOf(document)) {
    for (const response of Object.values(responses)) {
      const names = ['X-Request-Id', ...Object.keys(response.headers ?? {})]
      response.headers = Object.fromEntries(
        names.map((name) => [
          name.replace('?', ''),
          { $ref: `#/components/headers/${headers[name]?.component ?? unknown(name)}` },
        ]),
      )
    }
  }
}

/** Answers that several operations have are kept under their name. */
export function shareAnswers(document: OpenApi): void {
  const answers = operationsOf(document).flatMap(({ responses }) => Object.values(responses))
  const uses = Map.groupBy(answers, ({ name }) => name)
  const shared: Record<string, unknown> = {}
  for (const { responses } of operationsOf(document)) {
    for (const [status, { name, ...response }] of Object.entries(responses)) {
      if (typeof name !== 'string' || uses.get(name)?.length === 1) {
        responses[status] = response
        continue
      }
      keep(shared, name, response)
      responses[status] = { $ref: `#/components/responses/${name}` }
    }
  }
  document.components.responses = sorted(shared)
}

/** Schemas with a title are kept under it. */
export function shareSchemas(document: OpenApi): void {
  const shared: Record<string, unknown> = {}
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk)
    if (typeof node !== 'object' || node === null) return node
    const walked: Record<string, unknown> = Object.fromEntries(
      Object.entries(node).map(([key, value]) => [key, key === 'examples' ? value : walk(value)]),
    )
    const { title, ...schema } = walked
    if (typeof title !== 'string' || !('type' in schema)) return walked
    keep(shared, title, schema)
    return { $ref: `#/components/schemas/${title}` }
  }
  document.paths = walk(document.paths) as OpenApi['paths']
  document.components.responses = walk(document.components.responses) as Record<string, unknown>
  document.components.schemas = sorted(shared)
}

function keep(shared: Record<string, unknown>, name: string, value: unknown): void {
  if (name in shared && !isDeepStrictEqual(shared[name], value)) throw new Error(`${name} means two things`)
  shared[name] = value
}

function sorted(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function unknown(name: string): never {
  throw new Error(`there is no header ${name}`)
}
