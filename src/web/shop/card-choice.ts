/** A choice of test cards, in place of the provider's card fields. */
import { el } from '../common/dom.ts'
import { cards } from './cards.ts'

interface CardChoice {
  element: HTMLElement
  value(): string
  choose(id: string): void
}

export function cardChoice(): CardChoice {
  const inputs = cards.map(({ id }, index) => {
    const input = el('input', { type: 'radio', name: 'card', value: id, id })
    input.checked = index === 0
    return input
  })
  const element = el(
    'div',
    { class: 'cards', role: 'radiogroup', 'aria-labelledby': 'card-title' },
    ...cards.map(({ id, label, behaviour }, index) =>
      el(
        'label',
        { class: 'card-option', for: id },
        inputs[index],
        el('span', {}, el('strong', {}, label), el('span', { class: 'hint' }, behaviour)),
      ),
    ),
  )
  return {
    element,
    value: () => inputs.find((input) => input.checked)?.value ?? '',
    choose(id) {
      for (const input of inputs) input.checked = input.value === id
    },
  }
}
