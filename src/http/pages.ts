/** The pages people look at: files of `src/web`, as they are, their TypeScript without its types. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { transformSync } from 'amaro'
import { demoKeys } from '../store/demo.ts'
import type { App } from './app-type.ts'

const root = join(import.meta.dirname, '../web')

/** Nothing from anywhere else, nothing inline, no frame around it: a page that has an operator's key in hand must not be
 * somebody else's to steer. https://www.w3.org/TR/CSP3/ */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const safeHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  // Asked for again each time, answered 304 while unchanged: a deploy is seen at once.
  'cache-control': 'no-cache',
}

/** A storefront of another origin may import the browser client from here. */
const forAnyStorefront = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' }

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** `/admin`, `/docs` and, with `demo`, `/shop`; what they load is under `/assets`. */
export function pageRoutes(app: App, demo: boolean): void {
  for (const file of filesOf(root)) {
    const type = types[extname(file)]
    if (type !== undefined) serve(app, `/assets/${relative(root, file).split(sep).join('/')}`, file, type)
  }
  for (const page of demo ? ['admin', 'docs', 'shop'] : ['admin', 'docs']) {
    serve(app, `/${page}`, join(root, page, 'index.html'), types['.html'] as string)
  }
  // The demo's keys are no secret; pages offer them. Elsewhere there are none.
  app.get('/assets/demo.json', { schema: { hide: true } }, async (_request, reply) => {
    return reply.headers(safeHeaders).send({ keys: demo ? demoKeys : null })
  })
}

function serve(app: App, url: string, file: string, type: string): void {
  const source = readFileSync(file, 'utf8')
  const content = extname(file) === '.ts' ? transformSync(source, { mode: 'strip-only' }).code : source
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`
  app.get(url, { schema: { hide: true } }, async (request, reply) => {
    reply.headers({ ...safeHeaders, etag, ...(url.startsWith('/assets/client/') ? forAnyStorefront : {}) })
    if (request.headers['if-none-match'] === etag) return reply.code(304).send()
    return reply.type(type).send(content)
  })
}

function filesOf(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
