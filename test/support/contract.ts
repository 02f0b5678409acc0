/** Holds every answer that a test receives against the contract: a path, a status, a header or a member that it does not
 * name is a failure of the test, whatever the test itself looks at. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { inject } from 'vitest'

declare module 'vitest' {
  interface ProvidedContext {
    /** `openapi.yaml` as JSON: read once for the whole run, as YAML is slow. */
    contract: string
  }
}

export interface Answered {
  method: string
  /** As it was sent, with its query. */
  path: string
  status: number
  headers: Headers
  text: string
}

interface Response {
  $ref?: string
  headers?: Record<string, { $ref: string }>
  content?: Record<string, object>
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>
  components: {
    responses: Record<string, Response>
    headers: Record<string, { required: boolean; schema: object }>
  }
}

/** Throws unless the contract foresees the answer. */
export function expectInContract(answer: Answered): void {
  // A browser's question before its request; the Fetch standard's, not ours.
  if (answer.method === 'OPTIONS') return
  const faults = faultsOf(answer)
  if (faults.length === 0) return
  const { method, path, status, text } = answer
  throw new Error(
    `${method} ${path} was answered with ${status}, which openapi.yaml does not foresee:\n  ${faults.join('\n  ')}\n${text.slice(0, 2000)}`,
  )
}

function faultsOf({ method, path, status, headers, text }: Answered): string[] {
  const { document } = contract()
  const route = routeOf(document, pathname(path))
  // As the answer to GET, but for its body (RFC 9110, 9.3.2).
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase()
  const responses = route === undefined ? undefined : document.paths[route]?.[verb]?.responses
  if (route === undefined || responses === undefined) return faultsWithoutRoute(route, method, status, headers, text)

  const stated = responses[status]
  if (stated === undefined) return [`${method} ${route} has only ${Object.keys(responses).join(', ')}`]
  const name = stated.$ref?.split('/').at(-1)
  const response = name === undefined ? stated : document.components.responses[name]
  const base =
    name === undefined ? ['paths', route, verb, 'responses', String(status)] : ['components', 'responses', name]
  const content = method === 'HEAD' ? undefined : response?.content
  return [...headerFaults(response?.headers ?? {}, headers), ...bodyFaults(content, base, headers, text)]
}

/** No such path, no such method, or what was sent is so broken that no route was looked for. */
function faultsWithoutRoute(
  route: string | undefined,
  method: string,
  status: number,
  headers: Headers,
  text: string,
): string[] {
  const allowed = route === undefined ? [400, 404, 405] : [400, 405]
  const faults = allowed.includes(status) ? [] : [`${method} ${route ?? 'of an unknown path'} is not in it`]
  if (status === 405 && headers.get('allow') === null) faults.push('Allow is missing')
  if (method === 'HEAD') return faults
  return [
    ...faults,
    ...bodyFaults({ 'application/problem+json': {} }, ['components', 'schemas', 'Problem'], headers, text, true),
  ]
}

function headerFaults(stated: Record<string, { $ref: string }>, headers: Headers): string[] {
  return Object.entries(stated).flatMap(([name, { $ref }]) => {
    const component = $ref.split('/').at(-1) ?? ''
    const value = headers.get(name)
    if (value === null) return contract().document.components.headers[component]?.required ? [`${name} is missing`] : []
    const validate = validator(['components', 'headers', component, 'schema'])
    return validate(value) ? [] : [`${name}: ${value} ${messages(validate)}`]
  })
}

function bodyFaults(
  content: Record<string, object> | undefined,
  base: string[],
  headers: Headers,
  text: string,
  isSchema = false,
): string[] {
  if (content === undefined) return text === '' ? [] : ['there should be no body']
  const type = headers.get('content-type')?.split(';')[0] ?? 'none'
  if (!(type in content)) return [`content type ${type} instead of ${Object.keys(content).join(', ')}`]
  if (!type.endsWith('json')) return []
  const validate = validator(isSchema ? base : [...base, 'content', type, 'schema'])
  return validate(JSON.parse(text)) ? [] : [messages(validate)]
}

function messages({ errors }: ValidateFunction): string {
  return (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
    .join('; ')
}

let loaded: { document: Document; ajv: Ajv2020 } | undefined

function contract() {
  if (loaded === undefined) {
    const document = JSON.parse(inject('contract')) as Document
    close(document)
    const ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true })
    addFormats.default(ajv)
    ajv.addSchema({ $id: 'contract', ...document })
    loaded = { document, ajv }
  }
  return loaded
}

const validators = new Map<string, ValidateFunction>()

/** Of the schema at this place. Compiled when it is first needed. */
function validator(place: string[]): ValidateFunction {
  const pointer = place.map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  let validate = validators.get(pointer)
  if (validate === undefined) {
    validate = contract().ajv.compile({ $ref: `contract#/${pointer}` })
    validators.set(pointer, validate)
  }
  return validate
}

/** Clients must bear members that they do not know; a test must not, or the contract would not tell of them. */
function close(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  if (!Array.isArray(node) && 'type' in node && node.type === 'object' && 'properties' in node) {
    Object.assign(node, { additionalProperties: false })
  }
  for (const value of Object.values(node)) close(value)
}

function pathname(path: string): string {
  return path.split(/[?#]/)[0] ?? ''
}

const routes = new Map<string, RegExp>()

/** The contract's path that matches; one without parameters before others. */
function routeOf(document: Document, path: string): string | undefined {
  if (routes.size === 0) {
    const byParameters = Object.keys(document.paths).sort((a, b) => a.split('{').length - b.split('{').length)
    for (const each of byParameters) {
      routes.set(each, new RegExp(`^${each.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+')}$`))
    }
  }
  for (const [route, pattern] of routes) if (pattern.test(path)) return route
  return undefined
}
