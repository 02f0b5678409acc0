/** A button of the API: asks, does it once, says what came of it, and shows the page anew. */
import { ask, type Question } from './confirm.ts'
import { button, notice, problemText } from './parts.ts'
import type { View } from './view.ts'

interface Act {
  label: string
  kind?: 'primary' | 'danger'
  /** Says more than the label where a page has several alike. */
  about?: string
  question: Question
  /** Resolves with what came of it, as a sentence. */
  run(): Promise<string>
}

export function actButton(view: View, { label, kind, about, question, run }: Act): HTMLButtonElement {
  const made = button(label, () => void press(), kind)
  if (about !== undefined) made.setAttribute('aria-label', `${label}: ${about}`)
  let isUnderWay = false
  async function press(): Promise<void> {
    if (isUnderWay) return
    isUnderWay = true
    try {
      if (await ask(question, view.signal)) await act(view, made, run)
    } finally {
      isUnderWay = false
    }
  }
  return made
}

/** Does it, with the button out of reach meanwhile. */
export async function act(view: View, pressed: HTMLButtonElement, run: () => Promise<string>): Promise<void> {
  const label = pressed.textContent
  pressed.disabled = true
  pressed.textContent = 'Working…'
  view.say(notice('', 'Working…'))
  try {
    view.say(notice('good', await run()))
  } catch (error) {
    view.say(notice('bad', problemText(error, 'acted')))
  }
  await view.reload()
  // Where the page could not be shown anew, it is still there.
  pressed.disabled = false
  pressed.textContent = label
}
