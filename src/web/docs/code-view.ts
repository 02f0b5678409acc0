/** Code to read and to copy: JSON with its parts coloured, anything else as it is. */
import { el } from '../common/dom.ts'

/** A block that scrolls by itself, with a button that copies it. `label` says what it is to those who do not see it. */
export function codeBlock(label: string, text: string, language: 'json' | 'text' = 'text'): HTMLElement {
  const code = el('code', {}, ...(language === 'json' ? coloured(text) : [text]))
  const pre = el('pre', { tabindex: '0', role: 'region', 'aria-label': label }, code)
  return el(
    'div',
    { class: 'code' },
    el(
      'div',
      { class: 'caption' },
      label,
      copyButton(label, () => text),
    ),
    pre,
  )
}

/** The value as indented JSON. */
export function jsonBlock(label: string, value: unknown): HTMLElement {
  return codeBlock(label, JSON.stringify(value, null, 2), 'json')
}

/** Nothing where the browser lets no page copy, which it does over plain HTTP from elsewhere. */
function copyButton(label: string, textOf: () => string): HTMLButtonElement | null {
  if (navigator.clipboard === undefined) return null
  const said = el('span', { 'aria-live': 'polite' }, 'Copy')
  const button = el('button', { type: 'button', class: 'copy' }, said)
  button.append(el('span', { class: 'visually-hidden' }, ` ${label}`))
  button.addEventListener('click', () => {
    const say = (word: string) => {
      said.textContent = word
      setTimeout(() => (said.textContent = 'Copy'), 2000)
    }
    navigator.clipboard.writeText(textOf()).then(
      () => say('Copied'),
      () => say('Not allowed'),
    )
  })
  return button
}

const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g

function coloured(json: string): (Node | string)[] {
  const parts: (Node | string)[] = []
  let end = 0
  for (const match of json.matchAll(tokens)) {
    const [whole, string, colon] = match
    parts.push(json.slice(end, match.index))
    if (string !== undefined && colon !== undefined) parts.push(el('span', { class: 'json-name' }, string), colon)
    else parts.push(el('span', { class: string === undefined ? 'json-literal' : 'json-string' }, whole))
    end = match.index + whole.length
  }
  return [...parts, json.slice(end)]
}
