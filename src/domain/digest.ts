import { createHmac, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto'
import canonicalize from 'canonicalize'

/** What is kept of a request in order to tell whether a repeat is the same one. Nothing of the request can be read from it. */
export interface RequestDigest {
  /** Which of the digest secrets was used. */
  secretId: string
  /** HMAC-SHA256, 32 bytes. Two requests are the same exactly when this is. */
  digest: Buffer
  /**
   * A short keyed tag for the method, the path and each top-level field of the body, to name what differs. Made when
   * first read: it costs as much as the digest, and a replay needs none.
   */
  readonly tags: Readonly<Record<string, string>>
}

export interface DigestSecret {
  /** Derived from the secret, so that it follows the secret through any reordering of the list. */
  readonly id: string
  readonly digestKey: KeyObject
  readonly tagKey: string
}

/** The secrets that key digests, newest first: the newest makes new digests, the others recompute older ones. */
export class DigestSecrets {
  readonly newest: DigestSecret
  readonly #byId: ReadonlyMap<string, DigestSecret>

  /** Throws a RangeError for an empty list or an empty secret. */
  constructor(secrets: readonly string[]) {
    const derived = secrets.map(deriveSecret)
    const [newest] = derived
    if (newest === undefined) throw new RangeError('At least one digest secret is needed')
    this.newest = newest
    this.#byId = new Map(derived.map((secret) => [secret.id, secret]))
  }

  /** The secret that an attempt remembers, or undefined where it is no longer configured. */
  pick(id: string): DigestSecret | undefined {
    return this.#byId.get(id)
  }
}

function deriveSecret(secret: string): DigestSecret {
  if (secret === '') throw new RangeError('A digest secret must not be empty')
  const derive = (use: string, bytes: number) => Buffer.from(hkdfSync('sha256', secret, '', `checkout ${use}`, bytes))
  return {
    id: derive('digest secret id', 8).toString('hex'),
    digestKey: createSecretKey(derive('request digest', 32)),
    tagKey: derive('field tag', 32).toString('hex'),
  }
}

interface DigestedRequest {
  method: string
  path: string
  /** Validated JSON. Undefined is the same as an object without fields. */
  body: object | undefined
}

/**
 * Digests method, path and the RFC 8785 form of the body, top-level fields equal to their default left out. Order of
 * keys, white space and spelling of escapes make no difference; order of arrays and the normalisation of Unicode do.
 * `defaults` maps a top-level field to the value that its absence stands for.
 *
 * Throws a RangeError for a number that is not a safe integer (a validated body has none, and two of them could share
 * one digest), and an Error for a lone surrogate.
 */
export function digestRequest(
  secret: DigestSecret,
  { method, path, body = {} }: DigestedRequest,
  defaults: Readonly<Record<string, unknown>> = {},
): RequestDigest {
  const fields = withoutDefaults(body, defaults)
  refuseInexactNumbers(fields)
  let tags: Record<string, string> | undefined
  return {
    secretId: secret.id,
    digest: createHmac('sha256', secret.digestKey)
      .update(canonicalText([method, path, fields]))
      .digest(),
    get tags() {
      tags ??= tagAll(secret, method, path, fields)
      return tags
    },
  }
}

/**
 * The top-level fields (or `method`, `path`) in which two requests differ, those included that only one has, sorted.
 * Both must have been tagged with the same secret.
 */
export function differingFields(
  stored: Readonly<Record<string, string>>,
  current: Readonly<Record<string, string>>,
): string[] {
  const differing = new Set<string>()
  for (const name of [...Object.keys(stored), ...Object.keys(current)]) {
    if (stored[name] !== current[name]) differing.add(fieldOfTag(name))
  }
  return [...differing].sort()
}

/** Tags of the method and the path start with a colon; a field whose name does gets a second one. */
const methodTag = ':method'
const pathTag = ':path'

function tagOfField(name: string): string {
  return name.startsWith(':') ? `:${name}` : name
}

function fieldOfTag(name: string): string {
  return name.startsWith(':') ? name.slice(1) : name
}

function tagAll(secret: DigestSecret, method: string, path: string, fields: object): Record<string, string> {
  // Without a prototype, so that a field named `__proto__` is kept like any other.
  const tags: Record<string, string> = Object.create(null)
  tags[methodTag] = tag(secret, methodTag, method)
  tags[pathTag] = tag(secret, pathTag, path)
  for (const [field, value] of Object.entries(fields)) {
    const name = tagOfField(field)
    if (value !== undefined) tags[name] = tag(secret, name, value)
  }
  return tags
}

/**
 * 72 bits. SHA-3 makes a sound MAC of a key put before the text, which SHA-2 needs HMAC for; a request has some ten
 * tags, and ten HMACs cost more than everything else here together.
 */
function tag(secret: DigestSecret, name: string, value: unknown): string {
  return hash('sha3-256', secret.tagKey + JSON.stringify(name) + canonicalize(value), 'base64url').slice(0, 12)
}

function withoutDefaults(body: object, defaults: Readonly<Record<string, unknown>>): object {
  const fields = body as Readonly<Record<string, unknown>>
  const said = Object.keys(defaults).filter(
    (name) => Object.hasOwn(fields, name) && canonicalText([fields[name]]) === canonicalText([defaults[name]]),
  )
  if (said.length === 0) return body
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !said.includes(name)))
}

/** The list keeps the result a string for every value: canonicalize answers undefined for what JSON cannot say. */
function canonicalText(list: readonly unknown[]): string {
  return canonicalize(list) as string
}

function refuseInexactNumbers(value: unknown): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a safe integer`)
  } else if (Array.isArray(value)) {
    for (const element of value) refuseInexactNumbers(element)
  } else if (typeof value === 'object' && value !== null) {
    for (const name in value) refuseInexactNumbers((value as Record<string, unknown>)[name])
  }
}
