/** The form that sends an operation to this service and shows what it answers. */
import { el } from '../common/dom.ts'
import { codeBlock } from './code-view.ts'
import type { Operation } from './contract.ts'
import { apiKeyField, bodyField, type Field, idempotencyKeyField, parameterField } from './fields.ts'
import { type DemoKeys, rememberAttempt, rememberIds } from './memory.ts'
import { replyView } from './reply-view.ts'
import { callOf, curlOf, type Filled } from './request.ts'
import { type Reply, send } from './send.ts'

const keyHeader = 'Idempotency-Key'

export function tryForm(operation: Operation, demoKeys: DemoKeys): HTMLElement {
  const key = operation.roles.length > 0 ? apiKeyField(operation, demoKeys) : undefined
  const parameters = operation.parameters.map((parameter) =>
    parameter.name === keyHeader ? idempotencyKeyField(parameter) : parameterField(operation, parameter),
  )
  const body = operation.body && bodyField(operation.body)
  const filled = (): Filled => ({
    key: key?.value() ?? '',
    parameters: Object.fromEntries(parameters.map(({ name, value }) => [name, value()])),
    body: body?.value() ?? '',
  })

  const button = el('button', { class: 'primary', type: 'submit' })
  const place = el('div', { 'aria-live': 'polite' })
  const curl = el('div')
  const fields = [key, ...parameters, body].filter((field) => field !== undefined)
  const form = el(
    'form',
    { class: 'fields' },
    ...fields.map(({ view }: Field) => view),
    realWarning(operation, demoKeys),
    button,
  )

  /** Answers by idempotency key. */
  const replies = new Map<string, Reply[]>()
  const repliesTo = ({ parameters }: Filled): Reply[] => replies.get(parameters[keyHeader] ?? '') ?? []
  const refresh = () => {
    const now = filled()
    const secret = !Object.values(demoKeys).includes(now.key)
    button.textContent = repliesTo(now).length > 0 ? 'Send again with the same key' : 'Send'
    curl.replaceChildren(codeBlock('curl', curlOf(callOf(operation, now), location.origin, secret)))
  }
  form.addEventListener('input', refresh)
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
  })
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (button.disabled) return
    button.disabled = true
    const sent = filled()
    const attempt = sent.parameters[keyHeader] ?? ''
    try {
      const reply = await send(callOf(operation, sent))
      const before = repliesTo(sent)
      place.replaceChildren(replyView(operation, reply, before))
      if (attempt !== '') {
        replies.set(attempt, [...before, reply])
        rememberAttempt(attempt)
      }
      rememberIds(reply.text)
    } catch (error) {
      place.replaceChildren(noAnswer(error as Error, attempt !== ''))
    }
    button.disabled = false
    refresh()
    place.scrollIntoView({ block: 'nearest' })
  })
  refresh()
  return el(
    'section',
    { class: 'card try', 'aria-labelledby': 'try' },
    el('h2', { id: 'try' }, 'Try it'),
    form,
    place,
    el('details', { class: 'part', open: true }, el('summary', {}, 'As a curl command'), curl),
  )
}

/** Where the tenant is a real one, people should know before they press the button. */
function realWarning({ method }: Operation, demoKeys: DemoKeys): HTMLElement | null {
  if (method === 'GET' || Object.keys(demoKeys).length > 0) return null
  return el('p', { class: 'notice warn' }, 'This is a real call: it changes what belongs to the tenant of the key.')
}

function noAnswer(error: Error, hasKey: boolean): HTMLElement {
  const then = hasKey ? ' Whether it was carried out is not known: send it again with the same key.' : ''
  return el('p', { class: 'notice bad' }, `No answer came: ${error.message}.${then}`)
}
