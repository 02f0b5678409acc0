/**
 * Posts to a URL that somebody else has chosen, without lending them our place in the network: the name is resolved once,
 * every address it has must be public, and the connection goes to just the address that was looked at. No redirects, no
 * proxy, a time limit, and of the answer only the status.
 */
import { lookup } from 'node:dns/promises'
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress } from './public-address.ts'

interface OutsidePost {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
  /** For all of it, name resolution included. */
  timeoutMs: number
  /** Also into private networks, and without TLS: for development alone. */
  allowPrivate: boolean
}

export type PostOutcome = { kind: 'answered'; status: number } | { kind: 'failed'; reason: PostFailure }

type PostFailure =
  | 'url_invalid'
  | 'address_not_public'
  | 'name_not_found'
  | 'connection_failed'
  | 'tls_failed'
  | 'timeout'

/** Answers are drained up to this, so that honest receivers see their answer taken, bytes. */
const answerMax = 16 * 1024

/** Why a URL may not be posted to, as far as it can be told without resolving its name; null where it may. */
export function refusalOf(url: string, allowPrivate: boolean): 'url_invalid' | 'address_not_public' | null {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined) return 'url_invalid'
  const { protocol, username, password, hash } = parsed
  const scheme = protocol === 'https:' || (allowPrivate && protocol === 'http:')
  if (!scheme || username !== '' || password !== '' || hash !== '' || parsed.hostname === '') return 'url_invalid'
  const host = hostOf(parsed)
  // A name without a dot is one of our own network.
  if (!allowPrivate && (isIP(host) === 0 ? !/[^.]\.[^.]/.test(host) : !isPublicAddress(host)))
    return 'address_not_public'
  return null
}

/** Never rejects. */
export async function postOutside(post: OutsidePost): Promise<PostOutcome> {
  const refused = refusalOf(post.url, post.allowPrivate)
  if (refused !== null) return { kind: 'failed', reason: refused }
  const signal = AbortSignal.timeout(Math.max(1, Math.ceil(post.timeoutMs)))
  try {
    const url = new URL(post.url)
    const address = await within(signal, resolved(hostOf(url), post.allowPrivate))
    if (typeof address === 'string') return { kind: 'failed', reason: address }
    return { kind: 'answered', status: await send(url, address, post, signal) }
  } catch (error) {
    return { kind: 'failed', reason: signal.aborted ? 'timeout' : reasonOf(error) }
  }
}

interface Address {
  address: string
  family: number
}

/** One public address is not enough: whoever mixes in a private one wants it to be taken by chance. */
async function resolved(
  host: string,
  allowPrivate: boolean,
): Promise<Address | 'name_not_found' | 'address_not_public'> {
  const addresses = await lookup(host, { all: true }).catch(() => [])
  const [first] = addresses
  if (first === undefined) return 'name_not_found'
  if (!allowPrivate && !addresses.every(({ address }) => isPublicAddress(address))) return 'address_not_public'
  return first
}

function send(url: URL, { address, family }: Address, post: OutsidePost, signal: AbortSignal): Promise<number> {
  // Name and certificate are still those of the URL; only where it leads has been settled.
  const pinned: LookupFunction = (_host, options, answer) => {
    if (options.all) answer(null, [{ address, family }])
    else answer(null, address, family)
  }
  const tls = url.protocol === 'https:'
  return new Promise((resolve, reject) => {
    const body = Buffer.from(post.body)
    const outgoing = (tls ? httpsRequest : httpRequest)(
      url,
      {
        method: 'POST',
        headers: { ...post.headers, 'content-length': body.length },
        lookup: pinned,
        // An agent of its own: no connection that was made for another address is used again.
        agent: tls ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false }),
        maxHeaderSize: answerMax,
        signal,
      },
      (answer) => drain(answer, () => resolve(answer.statusCode ?? 0)),
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** The status counts, however the rest of the answer goes. */
function drain(answer: IncomingMessage, done: () => void): void {
  let read = 0
  answer.on('data', (chunk: Buffer) => {
    read += chunk.length
    if (read > answerMax) answer.destroy()
  })
  answer.on('error', () => {})
  answer.on('close', done)
}

/** What was awaited goes on by itself when the time is over: a name service can't be told to stop. */
function within<Result>(signal: AbortSignal, awaited: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    awaited.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

function reasonOf(error: unknown): PostFailure {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  return /CERT|TLS|SSL|_IN_CHAIN|EPROTO/.test(code) ? 'tls_failed' : 'connection_failed'
}
