import { hash, hkdfSync } from 'node:crypto'

/** What is kept of a request in order to tell whether a repeat is the same one. Nothing of the request can be read from it. */
export interface RequestDigest {
  /** Which of the digest secrets was used. */
  secretId: string
  /** A MAC of 32 bytes, as base64. Two requests are the same exactly when this is. */
  digest: string
  /**
   * A short keyed tag for the method, the path and each top-level field of the body, to name what differs. Made when
   * first read: it costs as much as the digest, and a replay needs none.
   */
  readonly tags: Readonly<Record<string, string>>
}

export interface DigestSecret {
  /** Derived from the secret, so that it follows the secret through any reordering of the list. */
  readonly id: string
  readonly digestKey: string
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
  const derive = (use: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, '', `checkout ${use}`, bytes)).toString('hex')
  return {
    // With another number wherever the same request gets another digest or other tags.
    id: derive('digest secret id 2', 8),
    digestKey: derive('request digest', 32),
    tagKey: derive('field tag', 32),
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
 * Throws a RangeError for a number that is not a safe integer: a validated body has none, and two of them could share
 * one digest.
 */
export function digestRequest(
  secret: DigestSecret,
  { method, path, body = {} }: DigestedRequest,
  defaults: Readonly<Record<string, unknown>> = {},
): RequestDigest {
  const texts = fieldTexts(body, defaults)
  let fields = ''
  for (const [name, text] of texts) fields += `${fields === '' ? '' : ','}${JSON.stringify(name)}:${text}`
  let tags: Record<string, string> | undefined
  return {
    secretId: secret.id,
    digest: mac(secret.digestKey, `[${JSON.stringify(method)},${JSON.stringify(path)},{${fields}}]`),
    get tags() {
      tags ??= tagAll(secret, method, path, texts)
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

function tagAll(
  secret: DigestSecret,
  method: string,
  path: string,
  texts: readonly (readonly [string, string])[],
): Record<string, string> {
  // Without a prototype, so that a field named `__proto__` is kept like any other.
  const tags: Record<string, string> = Object.create(null)
  tags[methodTag] = tag(secret, methodTag, JSON.stringify(method))
  tags[pathTag] = tag(secret, pathTag, JSON.stringify(path))
  for (const [field, text] of texts) {
    const name = tagOfField(field)
    tags[name] = tag(secret, name, text)
  }
  return tags
}

/** 72 bits. */
function tag(secret: DigestSecret, name: string, text: string): string {
  return mac(secret.tagKey, JSON.stringify(name) + text).slice(0, 12)
}

/** SHA-3 makes a sound MAC of a key put before the text, which SHA-2 needs HMAC for (https://keccak.team/keccak_strengths.html);
 * a request has some ten of them, and ten HMACs cost more than everything else here together. */
function mac(key: string, text: string): string {
  return hash('sha3-256', key + text, 'base64')
}

/** Each top-level field with its canonical text, sorted by name; those equal to their default left out. */
function fieldTexts(body: object, defaults: Readonly<Record<string, unknown>>): (readonly [string, string])[] {
  const texts: (readonly [string, string])[] = []
  for (const name of Object.keys(body).sort()) {
    const value = (body as Readonly<Record<string, unknown>>)[name]
    if (value === undefined) continue
    const text = canonicalText(value)
    if (Object.hasOwn(defaults, name) && text === canonicalText(defaults[name])) continue
    texts.push([name, text])
  }
  return texts
}

/** The RFC 8785 form of JSON whose numbers are safe integers, for which JSON.stringify writes scalars as that RFC asks. */
function canonicalText(value: unknown): string {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new RangeError(`${value} is not a safe integer`)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  // Put together as it goes: lists of parts and `join` take three times as long.
  let text = ''
  if (Array.isArray(value)) {
    for (const element of value) text += (text === '' ? '' : ',') + canonicalText(element)
    return `[${text}]`
  }
  // Sorted by UTF-16 units, as the RFC asks and as sort() does.
  for (const name of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[name]
    if (member !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${canonicalText(member)}`
  }
  return `{${text}}`
}
