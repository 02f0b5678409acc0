/** The contract: `openapi.yaml` is what the routes say, is valid, and its examples are what it describes. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { openapiFiles } from '../../scripts/openapi-document.ts'
import { Client } from '../support/client.ts'
import { expectInContract } from '../support/contract.ts'
import { startScene } from '../support/scene.ts'

interface Media {
  schema: object
  examples?: Record<string, { value: unknown }>
}

let committed: string
let document: Record<string, unknown>
beforeAll(async () => {
  committed = await readFile(resolve(import.meta.dirname, '../../openapi.yaml'), 'utf8')
  document = parse(committed)
})

describe('openapi.yaml', () => {
  it('is what the routes say: otherwise run `npm run openapi`', async () => {
    const written = await openapiFiles()
    expect(written['openapi.yaml']).toBe(committed)
    expect(written['openapi.json']).toBe(await readFile(resolve(import.meta.dirname, '../../openapi.json'), 'utf8'))
  })

  it('is valid OpenAPI 3.1, with every reference leading somewhere', async () => {
    const validator = new Validator({ strict: false })
    expect(await validator.validate(document as never)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    for (const [, pointer] of committed.matchAll(/\$ref: "#\/([^"]+)"/g)) {
      const target = pointer
        ?.split('/')
        .reduce<unknown>((node, key) => (node as Record<string, unknown>)?.[key], document)
      expect(target, pointer).toBeTypeOf('object')
    }
  })

  it('has examples of everything that is sent and answered, and each is what its schema describes', () => {
    const ajv = new Ajv2020({ strict: false })
    addFormats.default(ajv)
    ajv.addSchema({ $id: 'contract', ...document })
    const media = mediaIn(document, [])
    expect(media.length).toBeGreaterThan(100)
    for (const { at, type, schema, examples } of media) {
      if (!type.endsWith('json') || isEmptyBody(schema)) continue
      const place = at.map((key) => encodeURIComponent(key.replaceAll('/', '~1'))).join('/')
      const validate = ajv.compile({ $ref: `contract#/${place}/schema` })
      expect(Object.keys(examples ?? {}), place).not.toEqual([])
      for (const [name, { value }] of Object.entries(examples ?? {})) {
        expect(validate(value) || validate.errors, `${place} ${name}`).toBe(true)
      }
    }
  })

  it('is served by the service, to anybody', async () => {
    const scene = await startScene()
    const reply = await new Client(scene.service.url ?? '', 'none').get('/openapi.yaml')
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/yaml'])
    expect(reply.text).toBe(committed)
    const asJson = await new Client(scene.service.url ?? '', 'none').get('/openapi.json')
    expect([asJson.status, asJson.json]).toEqual([200, document])
    await scene.stop()
  })
})

describe('an answer that the contract does not foresee', () => {
  const headers = new Headers({ 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'req_1' })
  const product = { object: 'product', sku: 'mug', name: 'Mug', unit_price: 1250, currency: 'EUR', available: 1 }
  const asked = { method: 'GET', path: '/v1/products/mug', status: 200, headers, text: JSON.stringify(product) }

  it('passes only as described', () => {
    expect(() => expectInContract(asked)).not.toThrow()
  })

  it.each([
    ['another status', { status: 201 }, /has only 200, 400/],
    ['an unknown path', { path: '/v1/product/mug' }, /not in it/],
    ['an unknown method', { method: 'POST' }, /not in it/],
    ['another content type', { headers: new Headers({ 'x-request-id': 'req_1' }) }, /content type none/],
    ['a missing header', { headers: new Headers({ 'content-type': 'application/json' }) }, /X-Request-Id is missing/],
    ['a missing member', { text: JSON.stringify({ ...product, sku: undefined }) }, /required property 'sku'/],
    ['another type', { text: JSON.stringify({ ...product, available: '1' }) }, /available must be integer/],
    ['an unknown member', { text: JSON.stringify({ ...product, secret: 1 }) }, /additional properties/],
  ])('fails the test: %s', (_name, otherwise, message) => {
    expect(() => expectInContract({ ...asked, ...otherwise })).toThrow(message)
  })
})

function mediaIn(node: unknown, at: string[]): (Media & { at: string[]; type: string })[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]) =>
    at.at(-1) === 'content' && 'schema' in (value as object)
      ? [{ ...(value as Media), at: [...at, key], type: key }]
      : mediaIn(value, [...at, key]),
  )
}

/** Bodies that say nothing need no example. */
function isEmptyBody(schema: object): boolean {
  return JSON.stringify(schema).includes('"properties":{}')
}
