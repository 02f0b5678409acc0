/** The contract, OpenAPI 3.1, as the routes say it. */
import swagger from '@fastify/swagger'
import { Type } from 'typebox'
import { stringify } from 'yaml'
import { buildApp } from '../src/app.ts'
import type { Deps } from '../src/deps.ts'
import type { ProblemCode } from '../src/domain/problem.ts'
import { tags } from '../src/http/contract/operation.ts'
import { stripeNotifications } from '../src/provider/stripe-webhook.ts'
import { createLog } from '../src/runtime/log.ts'
import { shareAnswers, shareHeaders, shareSchemas } from './openapi-components.ts'
import { commonProblems, type ProblemAnswer, problemAnswers, type RouteFacts } from './openapi-problems.ts'

/** As YAML for people, and as JSON for programs that read no YAML, browsers among them. Throws where a route says nothing of
 * itself. */
export async function openapiFiles(): Promise<{ 'openapi.yaml': string; 'openapi.json': string }> {
  // Routes only register here: none is called.
  const deps = {
    config: { demo: true, trustedProxies: [] as string[] },
    log: createLog('silent'),
    notifications: stripeNotifications(['whsec_none']),
  } as Deps
  const problems = new Map<string, Record<string, ProblemAnswer>>()
  const withoutBody = new Set<string>()
  const examples = new Map<string, Record<string, unknown>>()
  const app = buildApp(deps, undefined, (app) =>
    app.register(swagger, {
      convertConstToEnum: false,
      openapi: {
        openapi: '3.1.0',
        info,
        servers: [{ url: '/' }],
        tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
        components: { securitySchemes },
      },
      transform: ({ schema, url, route }) => {
        if (schema?.hide) return { schema, url }
        const { problems: own, requestHeaders, requestExamples, ...rest } = schema ?? {}
        if (rest.operationId === undefined) throw new Error(`${route.method} ${url} says nothing of itself`)
        const hooks = [route.preParsing ?? []].flat() as { roles?: readonly string[] }[]
        const roles = hooks.flatMap((hook) => hook.roles ?? [])
        const facts: RouteFacts = {
          method: String(route.method),
          url,
          roles,
          tellsNewKeySafe: route.config?.tellsNewKeySafe !== undefined,
        }
        const codes: ProblemCode[] = [...commonProblems(facts), ...(own ?? [])]
        problems.set(rest.operationId, problemAnswers(codes, facts))
        if (Type.IsOptional(rest.body as Type.TSchema)) withoutBody.add(rest.operationId)
        if (requestExamples !== undefined) examples.set(rest.operationId, requestExamples)
        return {
          url,
          schema: {
            ...rest,
            security: roles.map((role) => ({ [role]: [] })),
            ...(requestHeaders === undefined
              ? {}
              : { headers: { type: 'object', required: Object.keys(requestHeaders), properties: requestHeaders } }),
          },
        }
      },
    }),
  )
  await app.ready()
  // Without what only code sees.
  const document = JSON.parse(JSON.stringify(app.swagger())) as OpenApi
  await app.close()

  for (const operation of operationsOf(document)) {
    Object.assign(operation.responses, problems.get(operation.operationId))
    const { requestBody } = operation
    if (requestBody === undefined) continue
    requestBody.required = !withoutBody.has(operation.operationId)
    const named = Object.entries(examples.get(operation.operationId) ?? {})
    if (named.length === 0) continue
    for (const media of Object.values(requestBody.content)) {
      media.examples = Object.fromEntries(named.map(([name, value]) => [name, { value }]))
    }
  }
  shareHeaders(document)
  shareAnswers(document)
  shareSchemas(document)
  const { components, paths, ...head } = document
  const whole = { ...head, paths, components }
  return {
    'openapi.yaml': stringify(whole, { aliasDuplicateObjects: false, lineWidth: 120 }),
    'openapi.json': `${JSON.stringify(whole)}\n`,
  }
}

export interface OpenApi {
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
}

export interface Operation {
  operationId: string
  requestBody?: {
    required: boolean
    content: Record<string, { schema: object; examples?: object }>
  }
  responses: Record<string, Record<string, unknown>>
}

export function operationsOf(document: OpenApi): Operation[] {
  return Object.values(document.paths).flatMap((methods) => Object.values(methods))
}

const info = {
  title: 'Checkout',
  version: '1',
  license: { name: 'MIT', identifier: 'MIT' },
  description: [
    'Takes a storefront’s checkout and charges for it at most once, however often the request repeats.',
    'Amounts are integers in the currency’s minor unit. Unknown fields are refused, in bodies and queries, and so is a query string on a POST.',
    'Errors are problem details (RFC 9457). A path that does not exist is a 404 `not_found`, a method that a path does not have a 405 `method_not_allowed` with `Allow`, and what is no HTTP a 400, 408 or 431 after which the connection ends.',
    'Clients should ignore members of answers that they do not know.',
  ].join('\n\n'),
}

const securitySchemes = {
  storefront: bearer(
    'A publishable key (`pk_…`): reads the catalog, creates checkouts, looks up an attempt by its key.',
  ),
  backend: bearer('A secret key (`sk_…`): everything of the tenant.'),
  admin: bearer('An operator’s key (`ak_…`).'),
}

function bearer(description: string) {
  return { type: 'http' as const, scheme: 'bearer', description }
}
