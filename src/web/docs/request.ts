/** From what is filled in to the request that is sent, and to the same as a curl command. */
import type { Operation } from './contract.ts'

export interface Filled {
  /** The API key; empty sends none. */
  key: string
  /** By name; empty ones are left out, except in the path. */
  parameters: Readonly<Record<string, string>>
  /** As text, whatever it is: what the service says of bad JSON is worth seeing, too. */
  body: string
}

export interface Call {
  method: string
  /** Path and query. */
  target: string
  headers: Readonly<Record<string, string>>
  body: string | undefined
}

export function callOf(operation: Operation, { key, parameters, body }: Filled): Call {
  const { method, path } = operation
  const query = new URLSearchParams()
  const headers: Record<string, string> = {}
  if (key !== '' && operation.roles.length > 0) headers.Authorization = `Bearer ${key}`
  for (const { name, in: place } of operation.parameters) {
    const value = parameters[name] ?? ''
    if (value === '' || place === 'path') continue
    if (place === 'query') query.set(name, value)
    else headers[name] = value
  }
  const sent = operation.body === undefined || body.trim() === '' ? undefined : body
  if (sent !== undefined) headers['Content-Type'] = operation.body?.type ?? 'application/json'
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(parameters[name] ?? ''))
  return { method, target: query.size === 0 ? filled : `${filled}?${query}`, headers, body: sent }
}

/** For a POSIX shell. With `hideKey` the API key is read from a variable there, so that it is in no shell's history. */
export function curlOf({ method, target, headers, body }: Call, origin: string, hideKey: boolean): string {
  const usual = body === undefined ? 'GET' : 'POST'
  const lines = [`curl -i${method === usual ? '' : ` -X ${method}`} ${quoted(`${origin}${target}`)}`]
  for (const [name, value] of Object.entries(headers)) {
    lines.push(
      name === 'Authorization' && hideKey
        ? '-H "Authorization: Bearer $CHECKOUT_API_KEY"'
        : `-H ${quoted(`${name}: ${value}`)}`,
    )
  }
  if (body !== undefined) lines.push(`-d ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
