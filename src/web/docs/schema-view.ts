/** A schema as a tree of members, each of which opens what is in it. */
import { el } from '../common/dom.ts'
import { inline } from './prose.ts'
import { limitsInWords, type Schema, typeInWords } from './schema.ts'

/** Members of an object, or of the objects in a list; of anything else one line. */
export function schemaView(schema: Schema): HTMLElement {
  const inner = innerObject(schema)
  if (inner === undefined) return el('p', { class: 'type' }, typeInWords(schema))
  return membersOf(inner)
}

function membersOf(schema: Schema): HTMLElement {
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {}).map(([name, each]) => member(name, each, required.has(name)))
  if (typeof schema.additionalProperties === 'object') {
    rows.push(member('any name', schema.additionalProperties, false, true))
  }
  return rows.length === 0
    ? el('p', { class: 'hint' }, 'An object without members of its own.')
    : el('ul', { class: 'members' }, ...rows)
}

function member(name: string, schema: Schema, required: boolean, anyName = false): HTMLLIElement {
  const inner = innerObject(schema)
  const head = [
    anyName ? el('em', {}, name) : el('code', { class: 'name' }, name),
    ' ',
    el('span', { class: 'type' }, typeInWords(schema)),
    !anyName && ' ',
    !anyName && el('span', { class: required ? 'required' : 'optional' }, required ? 'required' : 'optional'),
  ]
  const about = details(schema)
  if (inner === undefined) return el('li', {}, el('div', {}, ...head), ...about)
  const count = Object.keys(inner.properties ?? {}).length
  const opener = el(
    'details',
    {},
    el('summary', {}, ...(count === 0 ? ['What its members are'] : [`${count} members`])),
  )
  // What nobody opens is not built: some answers have hundreds of members.
  opener.addEventListener('toggle', () => opener.append(membersOf(inner)), { once: true })
  opener.firstElementChild?.append(el('span', { class: 'visually-hidden' }, ` of ${name}`))
  return el('li', {}, el('div', {}, ...head), ...about, opener)
}

/** What is said of a value: its description, its words, its limits. */
export function details(schema: Schema): HTMLElement[] {
  const words = schema.enum ?? schema.items?.enum
  const limits = limitsInWords(schema)
  return [
    ...(schema.description === undefined ? [] : [el('p', {}, ...inline(sentence(schema.description)))]),
    ...(words === undefined
      ? []
      : [el('p', { class: 'words' }, 'One of ', ...words.flatMap((word) => [el('code', {}, String(word)), ' ']))]),
    ...(limits.length === 0 ? [] : [el('p', { class: 'limits' }, limits.join(' · '))]),
    ...(schema.pattern === undefined ? [] : [el('p', { class: 'limits' }, 'Matches ', el('code', {}, schema.pattern))]),
  ]
}

function innerObject(schema: Schema): Schema | undefined {
  if (schema.items !== undefined) return innerObject(schema.items)
  return schema.properties !== undefined || typeof schema.additionalProperties === 'object' ? schema : undefined
}

function sentence(text: string): string {
  const begun = /^[a-z]+\b(?![`_])/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}
