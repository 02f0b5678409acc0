/** What an operator has written into a form and not yet done: a refusal, or the page shown anew, must not cost it. Kept in
 * this page alone, and for as long as the operator is signed in. */
import type { Api } from './api.ts'
import type { View } from './view.ts'

const kept = new WeakMap<Api, Map<string, Readonly<Record<string, string>>>>()

/** Fills the form with what was left in it, and keeps what is put in from now on. The result forgets it. `about` tells
 * forms apart. */
export function keepDraft({ api }: View, about: string, form: HTMLFormElement): () => void {
  const drafts = kept.get(api) ?? new Map<string, Readonly<Record<string, string>>>()
  kept.set(api, drafts)
  const fields = () => [...form.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>('input, textarea')]
  for (const field of fields()) {
    const left = drafts.get(about)?.[field.id]
    if (left === undefined) continue
    if (field instanceof HTMLInputElement && field.type === 'radio') field.checked = left === 'chosen'
    else field.value = left
  }
  const keep = () => {
    const values = fields().map((field) => {
      const isChoice = field instanceof HTMLInputElement && field.type === 'radio'
      return [field.id, isChoice ? (field.checked ? 'chosen' : '') : field.value]
    })
    drafts.set(about, Object.fromEntries(values))
  }
  for (const event of ['input', 'submit']) form.addEventListener(event, keep)
  return () => drafts.delete(about)
}
