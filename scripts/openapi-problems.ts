/** What every route may refuse with, and problems as answers of the contract. */
import { Problem, type ProblemCode, problemDocument } from '../src/domain/problem.ts'
import { CheckoutProblemSchema, exampleMembers, ProblemSchema } from '../src/http/contract/problem.ts'

export interface RouteFacts {
  method: string
  url: string
  /** Empty: anybody. */
  roles: readonly string[]
  /** Its errors say whether a new key is safe. */
  tellsNewKeySafe: boolean
}

/** Codes that come with any route of this kind, whatever it does. */
export function commonProblems({ method, url, roles }: RouteFacts): ProblemCode[] {
  if (!url.startsWith('/v1/')) return url === '/readyz' ? [] : ['internal']
  const hasBody = method !== 'GET'
  return [
    'invalid_request',
    ...(roles.length > 0 ? (['unauthorized', 'forbidden'] as const) : []),
    ...(hasBody ? (['payload_too_large'] as const) : []),
    // Where anybody may send, it is the payment provider, whose bytes are taken as they come.
    ...(hasBody && roles.length > 0 ? (['unsupported_media_type'] as const) : []),
    'internal',
    'database_unavailable',
  ]
}

export interface ProblemAnswer {
  /** Names it among the contract's shared answers. */
  name: string
  description: string
  headers?: Record<string, object>
  content: Record<string, object>
}

/** By status. */
export function problemAnswers(codes: readonly ProblemCode[], facts: RouteFacts): Record<string, ProblemAnswer> {
  const byStatus = Map.groupBy(new Set(codes), (code) => new Problem(code).status)
  return Object.fromEntries([...byStatus].map(([status, of]) => [status, answer(of.sort(), facts.tellsNewKeySafe)]))
}

function answer(codes: ProblemCode[], tellsNewKeySafe: boolean): ProblemAnswer {
  const [first] = codes.map((code) => new Problem(code))
  const retryAfter = mayAskToWait(codes)
  return {
    name: `${codes.map(pascal).join('Or')}${tellsNewKeySafe ? 'OfCheckout' : ''}`,
    description: codes.length === 1 && first !== undefined ? `${first.title}.` : `By code: ${codes.join(', ')}.`,
    ...(retryAfter === null ? {} : { headers: { [retryAfter]: {} } }),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            tellsNewKeySafe ? CheckoutProblemSchema : ProblemSchema,
            { properties: { code: codes.length === 1 ? { const: codes[0] } : { enum: codes } } },
          ],
        },
        examples: Object.fromEntries(codes.map((code) => [code, { value: example(code, tellsNewKeySafe) }])),
      },
    },
  }
}

/** Under the name of the contract's header: always, where it helps, or never. */
function mayAskToWait(codes: readonly ProblemCode[]): string | null {
  const waiting = codes.filter((code) => code === 'idempotency_key_in_progress' || new Problem(code).status === 503)
  // The hold of a run may not be placed yet.
  const maybe = codes.includes('order_state_conflict')
  if (waiting.length === codes.length) return 'Retry-After'
  return waiting.length > 0 || maybe ? 'Retry-After?' : null
}

function example(code: ProblemCode, tellsNewKeySafe: boolean): Record<string, unknown> {
  const members = tellsNewKeySafe ? { new_key_safe: false, ...exampleMembers[code] } : { ...exampleMembers[code] }
  return problemDocument(new Problem(code, { members }), 'req_2b7e6d64-54f5-4d5a-8a39-0c6f1a1f7d10')
}

function pascal(code: string): string {
  return code.replace(/(?:^|_)(\w)/g, (_match, letter: string) => letter.toUpperCase())
}
