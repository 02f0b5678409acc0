/** Examples of one body: the chosen one, and a choice where there are several. */
import { el } from '../common/dom.ts'
import { jsonBlock } from './code-view.ts'
import type { Example } from './contract.ts'

/** `of` says whose examples they are, e.g. `409`. */
export function examplesView(of: string, examples: readonly Example[]): HTMLElement | null {
  const [first] = examples
  if (first === undefined) return null
  if (examples.length === 1) return jsonBlock(`Example of ${of}`, first.value)
  const place = el('div', {}, jsonBlock(`Example of ${of}: ${inWords(first.name)}`, first.value))
  const choice = exampleChoice(`Examples of ${of}`, examples, (example) => {
    place.replaceChildren(jsonBlock(`Example of ${of}: ${inWords(example.name)}`, example.value))
  })
  return el('div', {}, choice, place)
}

export function exampleChoice(
  label: string,
  examples: readonly Example[],
  choose: (example: Example) => void,
): HTMLElement {
  const select = el('select', {}, ...examples.map(({ name }) => el('option', { value: name }, inWords(name))))
  select.addEventListener('change', () => {
    const example = examples[select.selectedIndex]
    if (example !== undefined) choose(example)
  })
  return el('label', { class: 'choice' }, el('span', {}, label), select)
}

function inWords(name: string): string {
  return name.replaceAll('_', ' ')
}
