/** What the contract says of a route beside what its schemas of params, query and body say: part of the route's schema. */
import type { ProblemCode } from '../../domain/problem.ts'
import type { Schema } from './schema.ts'

type AnswerHeader = 'Location' | 'Retry-After' | 'Idempotent-Replayed'

export interface AnswerInContract {
  description: string
  /** Absent where the answer has no body. */
  body?: Schema
  /** By name. */
  examples?: Record<string, unknown>
  headers?: readonly AnswerHeader[]
  /** `application/json` unless said otherwise. */
  contentType?: string
}

interface Described {
  operationId: string
  tag: Tag
  summary: string
  description?: string
  answers: Record<number, AnswerInContract>
  /** What it may refuse with, beside what every route may: see `commonProblems` of the contract's writer. */
  problems?: readonly ProblemCode[]
  /** Headers that the handler reads by itself, as JSON Schemas by name; the required ones. */
  headers?: Record<string, Schema>
  /** Of the body, by name. */
  bodies?: Record<string, unknown>
}

export const tags = {
  Catalog: 'Products: prices and stock live here.',
  Checkout: 'One order and one charge per attempt, whatever repeats the request.',
  Orders: 'A tenant’s orders, and the end of a hold.',
  Refunds: 'Money going back.',
  Runs: 'Metered work against a hold, such as a run of a language model.',
  Ledger: 'Double entry, read only.',
  Customers: 'Personal data.',
  Notifications: 'Events to the merchant, and the inbox of the payment provider.',
  Operators: 'What needs a person, and what a person may do. Every button is kept in the audit log.',
  Service: 'For those who run it.',
} as const

type Tag = keyof typeof tags

/** To be spread into a route's schema. */
export function operation(described: Described) {
  const { operationId, tag, summary, description, answers, problems, headers, bodies } = described
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    response: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer)])),
    problems: problems ?? [],
    ...(headers === undefined ? {} : { requestHeaders: headers }),
    ...(bodies === undefined ? {} : { requestExamples: bodies }),
  }
}

function responseOf({ description, body, examples, headers, contentType }: AnswerInContract): object {
  return {
    description,
    // Their schemas are the same everywhere; the contract's writer fills them in.
    ...(headers === undefined ? {} : { headers: Object.fromEntries(headers.map((name) => [name, {}])) }),
    ...(body === undefined
      ? { type: 'null' }
      : {
          content: {
            [contentType ?? 'application/json']: {
              schema: body,
              ...(examples === undefined
                ? {}
                : {
                    examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
                  }),
            },
          },
        }),
  }
}

export const idempotencyKeyHeader: Record<string, Schema> = {
  'Idempotency-Key': {
    type: 'string',
    minLength: 1,
    maxLength: 202,
    pattern: '^("[!#-+\\-.-~]{1,200}"|[!#-+\\-.-~]{1,200})$',
    description:
      'One random key per attempt, the same on every repeat: 1 to 200 visible ASCII characters other than comma and double quote; `"k"` is the same key as `k`. It must hold no personal data and be hard to guess.',
    example: '7f9c24e8-3b12-4fef-91e0-9a3f6b0d2c11',
  },
}

declare module 'fastify' {
  interface FastifySchema {
    operationId?: string
    tags?: readonly string[]
    summary?: string
    description?: string
    problems?: readonly ProblemCode[]
    requestHeaders?: Record<string, Schema>
    requestExamples?: Record<string, unknown>
  }
}
