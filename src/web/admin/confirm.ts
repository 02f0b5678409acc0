/** Asks before something is done: what will happen, in words, and a button that says it. */
import { el } from '../common/dom.ts'
import { button, type Piece } from './parts.ts'

export interface Question {
  title: string
  /** What it acts on; made anew for each question. */
  about(): Piece
  /** What it will do, a paragraph each. */
  says: readonly Piece[]
  /** The button's verb. */
  confirm: string
  isDangerous?: boolean
}

/** The second click of a double click must not confirm what it has only opened. */
const settleMs = 350

/** Resolves with whether the person confirmed; once, however often a button is pressed. When the page goes (`signal`), not. */
export function ask(
  { title, about, says, confirm, isDangerous = false }: Question,
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = el('dialog', { class: 'card', 'aria-labelledby': 'question' })
    const answer = (confirmed: boolean) => {
      dialog.close()
      dialog.remove()
      resolve(confirmed)
    }
    const no = button('Cancel', () => answer(false))
    const yes = button(confirm, () => answer(true), isDangerous ? 'danger' : 'primary')
    yes.disabled = true
    dialog.append(
      el('h2', { id: 'question' }, title),
      el('div', { class: 'subject' }, about()),
      ...says.map((paragraph) => el('p', {}, paragraph)),
      el('div', { class: 'buttons' }, no, yes),
    )
    signal.addEventListener('abort', () => answer(false))
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault()
      answer(false)
    })
    document.body.append(dialog)
    dialog.showModal()
    no.focus()
    setTimeout(() => {
      yes.disabled = false
    }, settleMs)
  })
}
