import type { Books, Change } from './books.ts'
import type { Kind, Resource } from './expand.ts'
import { readExpand } from './expand.ts'
import type { Form } from './form.ts'
import { optional, type Params, readParams, type Shape, texts } from './params.ts'
import type { Scope } from './records.ts'

/** What an endpoint acts on. `id` is the one in the path, empty where there is none. */
export type Call = { change: Change; books: Books; scope: Scope; id: string; version: string }

export type Endpoint = {
  method: 'GET' | 'POST'
  path: string
  /** Validates, and gives back what is left to do. What it throws is not stored under an idempotency key, since
   * nothing was executed; see https://docs.stripe.com/api/idempotent_requests. */
  prepare: (form: Form, version: string) => { run: (call: Call) => Resource; expand: string[][] }
}

type Definition<S extends Shape> = {
  method: 'GET' | 'POST'
  path: string
  /** The kind of object that it answers with, or lists. */
  answers: Kind
  list?: boolean
  shape: S
  check?: (params: Params<S>, version: string) => void
  run: (call: Call, params: Params<S>) => Resource
}

const expandShape = { expand: optional(texts) }

export function endpoint<S extends Shape>(definition: Definition<S>): Endpoint {
  const { method, path, answers, list = false, shape, check, run } = definition
  const whole = { ...shape, ...expandShape }
  return {
    method,
    path,
    prepare: (form, version) => {
      const params = readParams(form, whole) as Params<S> & Params<typeof expandShape>
      check?.(params, version)
      return { run: (call) => run(call, params), expand: readExpand(params.expand, answers, list) }
    },
  }
}
