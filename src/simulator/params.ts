import { invalidRequest } from './errors.ts'
import type { Form, FormValue } from './form.ts'

/** Reads one parameter; `name` is as the caller wrote it, for the error. */
export type Reader<T> = (value: FormValue, name: string) => T

export type Shape = Record<string, { read: Reader<unknown>; required: boolean }>
export type Params<S extends Shape> = {
  [K in keyof S]: S[K] extends { read: Reader<infer T>; required: infer R }
    ? R extends true
      ? T
      : T | undefined
    : never
}

export function required<T>(read: Reader<T>) {
  return { read, required: true as const }
}
export function optional<T>(read: Reader<T>) {
  return { read, required: false as const }
}

/** Reads a form by its shape, with Stripe's 400 for a parameter that is unknown, missing or malformed.
 * `within` is the name of the hash the form was found in. */
export function readParams<S extends Shape>(form: Form, shape: S, within?: string): Params<S> {
  for (const name of Object.keys(form)) {
    if (Object.hasOwn(shape, name)) continue
    const param = qualified(name, within)
    throw invalidRequest(`Received unknown parameter: ${param}`, { code: 'parameter_unknown', param })
  }
  const params: Record<string, unknown> = {}
  for (const [name, { read, required }] of Object.entries(shape)) {
    const value = form[name]
    const param = qualified(name, within)
    if (value !== undefined) params[name] = read(value, param)
    else if (required) throw invalidRequest(`Missing required param: ${param}.`, { code: 'parameter_missing', param })
  }
  return params as Params<S>
}

function qualified(name: string, within: string | undefined): string {
  return within === undefined ? name : `${within}[${name}]`
}

export const text: Reader<string> = (value, name) => {
  if (typeof value !== 'string') throw invalidRequest(`Invalid string: ${name}`, { param: name })
  if (value === '') {
    const message = `You passed an empty string for '${name}'. Remove it from your request or supply a non-empty value.`
    throw invalidRequest(message, { code: 'parameter_invalid_empty', param: name })
  }
  if (value.length > 5000) {
    const message = `Invalid string: ${name} must be at most 5000 characters`
    throw invalidRequest(message, { code: 'parameter_invalid_string_blank', param: name })
  }
  return value
}

export const integer: Reader<number> = (value, name) => {
  const number = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (Number.isNaN(number)) {
    const shown = typeof value === 'string' ? value : name
    throw invalidRequest(`Invalid integer: ${shown}`, { code: 'parameter_invalid_integer', param: name })
  }
  return number
}

export const positive: Reader<number> = (value, name) => {
  const number = integer(value, name)
  if (number < 1) {
    const message = 'This value must be greater than or equal to 1.'
    throw invalidRequest(message, { code: 'parameter_invalid_integer', param: name })
  }
  return number
}

export const boolean: Reader<boolean> = (value, name) => {
  if (value === 'true') return true
  if (value === 'false') return false
  throw invalidRequest(`Invalid boolean: ${String(value)}`, { param: name })
}

export function oneOf<const T extends string>(...allowed: T[]): Reader<T> {
  return (value, name) => {
    const found = allowed.find((word) => word === value)
    if (found === undefined)
      throw invalidRequest(`Invalid ${name}: must be one of ${allowed.join(', ')}`, { param: name })
    return found
  }
}

export const texts: Reader<string[]> = (value, name) => {
  if (!Array.isArray(value)) throw invalidRequest(`Invalid array: ${name}`, { param: name })
  return value.map((entry, index) => text(entry, `${name}[${index}]`))
}

/** https://docs.stripe.com/api/metadata: 50 keys of 40 characters, values of 500; an empty value unsets. */
export const metadata: Reader<Record<string, string>> = (value, name) => {
  if (value === '') return {}
  if (typeof value === 'string') throw invalidRequest('Invalid hash', { param: name })
  const pairs = Object.entries(value)
  if (pairs.length > 50) throw invalidRequest('Metadata can have at most 50 keys', { param: name })
  const read: Record<string, string> = {}
  for (const [key, entry] of pairs) {
    const param = `${name}[${key}]`
    if (typeof entry !== 'string') throw invalidRequest('Metadata values must be strings', { param })
    if (key.length > 40) throw invalidRequest('Metadata keys can have up to 40 characters', { param })
    if (entry.length > 500) throw invalidRequest('Metadata values can have up to 500 characters', { param })
    if (entry !== '') read[key] = entry
  }
  return read
}

export function hash<S extends Shape>(shape: S): Reader<Params<S>> {
  return (value, name) => {
    if (typeof value === 'string' || Array.isArray(value)) throw invalidRequest('Invalid hash', { param: name })
    return readParams(value, shape, name)
  }
}
