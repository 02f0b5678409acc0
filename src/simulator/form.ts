import { invalidRequest } from './errors.ts'

export type Form = { [name: string]: FormValue }
export type FormValue = string | FormValue[] | Form

const depthMax = 8

/** Reads the nested form encoding that Stripe's API takes: `a[b]=1`, `list[]=x`, `list[0]=x`.
 * Throws Stripe's 400 where the same name is used as a value and as a hash. */
export function decodeForm(text: string): Form {
  const form: Form = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) place(form, splitName(name), value, name)
  return arraysIn(form) as Form
}

function splitName(name: string): string[] {
  const bracket = name.indexOf('[')
  if (bracket <= 0) return [name]
  const path = [name.slice(0, bracket)]
  for (const part of name.slice(bracket).matchAll(/\[([^\]]*)\]/g)) path.push(part[1] ?? '')
  if (path.length > depthMax) throw invalidRequest(`Invalid request: ${name} is nested too deeply`, { param: name })
  return path
}

function place(form: Form, path: string[], value: string, name: string): void {
  let hash = form
  path.forEach((part, depth) => {
    const key = part === '' ? String(Object.keys(hash).length) : part
    if (depth === path.length - 1) {
      hash[key] = value
      return
    }
    hash[key] ??= Object.create(null) as Form
    const next = hash[key]
    if (typeof next === 'string' || Array.isArray(next)) throw invalidRequest('Invalid hash', { param: name })
    hash = next
  })
}

/** A hash whose keys are exactly 0, 1, 2, … is an array. */
function arraysIn(value: FormValue): FormValue {
  if (typeof value === 'string' || Array.isArray(value)) return value
  const keys = Object.keys(value)
  for (const key of keys) value[key] = arraysIn(value[key] as FormValue)
  const isArray = keys.length > 0 && keys.every((key, index) => key === String(index))
  return isArray ? keys.map((key) => value[key] as FormValue) : value
}
