import type { IncomingHttpHeaders } from 'node:http'
import { ApiError, unauthorized } from './errors.ts'
import type { Scope } from './records.ts'
import { platformAccount } from './render-event.ts'

/** Which account and mode a request acts on, from its key (Bearer, or Basic with the key as user) and `Stripe-Account`.
 * Throws 401 without a key of Stripe's form, 403 for an account that the key may not act on.
 *
 * Plain keys belong to one platform account. `sk_test_acct_<name>_<secret>` belongs to the account `acct_<name>`. Two more
 * forms fail on purpose: `sk_test_expired…` has expired, and no key may act on `acct_revoked…`. */
export function authenticate(headers: IncomingHttpHeaders): Scope {
  const key = secretOf(headers.authorization)
  const parts = /^(?:sk|rk)_(test|live)_(\w+)$/.exec(key)
  if (!parts) throw unauthorized(`Invalid API Key provided: ${masked(key)}`)
  const [, mode, rest = ''] = parts
  if (rest.startsWith('expired')) throw unauthorized(`Expired API Key provided: ${masked(key)}`, 'api_key_expired')
  const own = /^(acct_[A-Za-z0-9]+)_/.exec(rest)?.[1] ?? platformAccount
  return { account: actedOn(headers['stripe-account'], own, key), livemode: mode === 'live' }
}

function actedOn(header: string | string[] | undefined, own: string, key: string): string {
  if (header === undefined || header === '') return own
  const account = String(header)
  if (/^acct_\w+$/.test(account) && !account.startsWith('acct_revoked')) return account
  const message = `The provided key '${masked(key)}' does not have access to account '${account}', or it does not exist.`
  throw new ApiError(403, { type: 'invalid_request_error', code: 'account_invalid', message })
}

function secretOf(header: string | undefined): string {
  const [scheme, credentials = ''] = (header ?? '').split(' ')
  if (scheme?.toLowerCase() === 'bearer' && credentials !== '') return credentials
  if (scheme?.toLowerCase() === 'basic') {
    const [user = ''] = Buffer.from(credentials, 'base64').toString().split(':')
    if (user !== '') return user
  }
  throw unauthorized('You did not provide an API key. Provide it in the Authorization header, using Bearer auth.')
}

function masked(key: string): string {
  return key.length <= 12 ? '***' : `${key.slice(0, 8)}***${key.slice(-4)}`
}
