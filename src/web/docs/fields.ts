/** The fields of the form that tries an operation. */
import { el } from '../common/dom.ts'
import type { Operation, Parameter } from './contract.ts'
import { exampleChoice } from './examples-view.ts'
import { apiKeyFor, type DemoKeys, keepApiKey, suggestionFor } from './memory.ts'

export interface Field {
  name: string
  view: HTMLElement
  value(): string
}

/** The API key: as typed last, and in a demo by a button for each key that may call this. */
export function apiKeyField(operation: Operation, demoKeys: DemoKeys): Field {
  const { roles } = operation
  const input = el('input', { id: 'try-api-key', autocomplete: 'off', spellcheck: 'false', class: 'mono' })
  input.value = apiKeyFor(operation, demoKeys)
  input.addEventListener('input', () => keepApiKey(input.value.trim()))
  const offers = roles.flatMap((role) => {
    const key = demoKeys[role]
    if (key === undefined) return []
    const button = el('button', { type: 'button', class: 'small' }, key)
    button.addEventListener('click', () => fill(input, key))
    return [button]
  })
  return {
    name: 'key',
    view: labelled(
      input,
      'API key',
      offers.length > 0 ? el('div', { class: 'offers' }, el('span', { class: 'hint' }, 'Demo:'), ...offers) : null,
      el('p', { class: 'hint' }, `Of the role ${roles.join(' or ')}. It stays in this tab.`),
    ),
    value: () => input.value.trim(),
  }
}

/** Kept for repeats until the button asks for a new one: a repeat with the same key is the same attempt. */
export function idempotencyKeyField({ name }: Parameter): Field {
  const input = el('input', {
    id: `try-${name}`,
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    class: 'mono',
  })
  input.value = freshKey()
  const renew = el('button', { type: 'button' }, 'New key')
  renew.addEventListener('click', () => fill(input, freshKey()))
  return {
    name,
    view: el(
      'div',
      { class: 'field' },
      el('label', { for: input.id }, name),
      el('div', { class: 'with-button' }, input, renew),
      el('p', { class: 'hint' }, 'Kept for repeats. A new key is a new attempt.'),
    ),
    value: () => input.value,
  }
}

export function parameterField(operation: Operation, parameter: Parameter): Field {
  const { name, in: place, required, schema } = parameter
  const words = schema.enum?.map(String)
  const attributes = { id: `try-${name}`, required, autocomplete: 'off', spellcheck: 'false' }
  const control =
    words === undefined
      ? el('input', {
          ...attributes,
          class: 'mono',
          placeholder: schema.default === undefined ? '' : `${schema.default}`,
        })
      : el(
          'select',
          attributes,
          el('option', { value: '' }, 'any'),
          ...words.map((word) => el('option', { value: word }, word)),
        )
  if (place === 'path') control.value = suggestionFor(operation, name)
  return { name, view: labelled(control, required ? name : `${name} (optional)`), value: () => control.value.trim() }
}

/** The body as text, which begins as the contract's first example. */
export function bodyField({ examples }: NonNullable<Operation['body']>): Field {
  const area = el('textarea', { id: 'try-body', class: 'mono', spellcheck: 'false', autocomplete: 'off', rows: '4' })
  const fault = el('p', { class: 'hint fault', id: 'try-body-fault', 'aria-live': 'polite' })
  area.setAttribute('aria-describedby', fault.id)
  const show = (value: unknown) => {
    fill(area, JSON.stringify(value, null, 2))
    area.rows = Math.min(20, area.value.split('\n').length)
  }
  area.addEventListener('input', () => (fault.textContent = whyNoJson(area.value)))
  const [first] = examples
  if (first !== undefined) show(first.value)
  const choice = examples.length > 1 ? exampleChoice('Begin with', examples, ({ value }) => show(value)) : null
  return { name: 'body', view: el('div', {}, choice, labelled(area, 'Body', fault)), value: () => area.value }
}

function whyNoJson(text: string): string {
  try {
    if (text.trim() !== '') JSON.parse(text)
    return ''
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`
  }
}

function labelled(
  control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement,
  text: string,
  ...more: (HTMLElement | null)[]
): HTMLElement {
  return el('div', { class: 'field' }, el('label', { for: control.id }, text), control, ...more)
}

/** As if it had been typed. */
function fill(control: HTMLInputElement | HTMLTextAreaElement, value: string): void {
  control.value = value
  control.dispatchEvent(new Event('input', { bubbles: true }))
}

function freshKey(): string {
  // Absent where a page comes over plain HTTP from another machine.
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
