/** Contract of what those who run the service ask of it. */
import { operation } from './operation.ts'
import { object, text, words } from './schema.ts'

export const alive = operation({
  operationId: 'healthz',
  tag: 'Service',
  summary: 'Whether the process lives',
  answers: {
    200: { description: 'It does.', body: object({ status: words('ok') }), examples: { ok: { status: 'ok' } } },
  },
})

export const ready = operation({
  operationId: 'readyz',
  tag: 'Service',
  summary: 'Whether requests should come here',
  answers: {
    200: { description: 'Yes.', body: object({ status: words('ready') }), examples: { ready: { status: 'ready' } } },
    503: {
      description: 'No: it is stopping, or the database is away.',
      body: object({ status: words('draining', 'database unavailable') }),
      examples: { draining: { status: 'draining' } },
    },
  },
})

export const metrics = operation({
  operationId: 'metrics',
  tag: 'Service',
  summary: 'Figures for Prometheus',
  answers: {
    200: { description: 'The text format of Prometheus.', contentType: 'text/plain', body: text },
  },
})

export const contract = operation({
  operationId: 'contract',
  tag: 'Service',
  summary: 'This document',
  answers: { 200: { description: 'OpenAPI 3.1.', contentType: 'application/yaml', body: text } },
})

export const contractAsJson = operation({
  operationId: 'contractAsJson',
  tag: 'Service',
  summary: 'This document as JSON',
  answers: {
    200: {
      description: 'The same as `/openapi.yaml`.',
      body: { type: 'object' },
      examples: { beginning: { openapi: '3.1.0' } },
    },
  },
})
