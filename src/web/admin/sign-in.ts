/** The form that a key is typed into. */
import { el } from '../common/dom.ts'
import { Api, NoAnswer, Refusal } from './api.ts'
import { code, notice } from './parts.ts'
import type { Figures } from './types.ts'

/** What an API key can be at all. */
const shape = /^[\x21-\x7e]{1,256}$/

/** `why` says why there is a form where there was a page before. Calls back with a key that the service has accepted. */
export function signInForm(why: string | null, onKey: (key: string) => void): HTMLElement {
  const field = el('input', {
    id: 'key',
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    autocapitalize: 'none',
    required: true,
    maxlength: '256',
    'aria-describedby': 'key-hint',
  })
  const enter = el('button', { type: 'submit', class: 'primary' }, 'Sign in')
  const told = el('div', { id: 'sign-in-told', role: 'alert' })
  const demo = el('p', { class: 'hint' })
  const form = el(
    'form',
    { class: 'card sign-in', novalidate: true },
    el('h1', { tabindex: '-1' }, 'Operators'),
    el('p', {}, 'See what needs a person, and decide it.'),
    why === null ? null : notice('warn', why),
    el('div', {}, el('label', { for: 'key' }, 'API key of the role admin'), field),
    el(
      'p',
      { class: 'hint', id: 'key-hint' },
      'It stays in this tab and is forgotten when you sign out, when the tab is closed, or after 15 minutes without you.',
    ),
    told,
    enter,
    demo,
  )
  const refuse = (text: string) => {
    told.replaceChildren(notice('bad', text))
    field.setAttribute('aria-invalid', 'true')
    field.focus()
    field.select()
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    if (!enter.disabled) void tryKey(field.value.trim())
  })
  async function tryKey(key: string): Promise<void> {
    if (!shape.test(key)) {
      refuse(key === '' ? 'Type a key.' : 'That is not a key: it holds characters that no key has.')
      return
    }
    enter.disabled = true
    told.replaceChildren()
    try {
      await new Api(key, () => {}).get<Figures>('/figures', { minutes: '1' })
      onKey(key)
    } catch (error) {
      refuse(refusalText(error))
    } finally {
      enter.disabled = false
    }
  }
  void offerDemoKey(demo)
  return form
}

function refusalText(error: unknown): string {
  if (error instanceof Refusal && error.status === 401) return 'This key is not known, or it has been revoked.'
  if (error instanceof Refusal && error.status === 403)
    return 'This is a key of another role. The console needs one of the role admin.'
  if (error instanceof Refusal) return `${error.title}. Try again.`
  if (error instanceof NoAnswer) return 'The service did not answer. Try again.'
  return 'Something went wrong in this page.'
}

/** The demo's keys are no secret: where it runs, the form says which one to type. */
async function offerDemoKey(hint: HTMLElement): Promise<void> {
  try {
    const response = await fetch('/assets/demo.json', { credentials: 'omit' })
    const { keys } = (await response.json()) as { keys: { admin: string } | null }
    if (keys !== null) hint.append('This is the demo. Its key is ', code(keys.admin), '.')
  } catch {
    // The hint is a convenience.
  }
}
