/** Texts of the contract: paragraphs, and code between backticks. */
import { el } from '../common/dom.ts'

/** As children of any element. */
export function inline(text: string): (Node | string)[] {
  return text.split('`').map((part, index) => (index % 2 === 1 ? el('code', {}, part) : part))
}

export function paragraphs(text: string): HTMLParagraphElement[] {
  return text
    .split(/\n{2,}/)
    .filter((each) => each.trim() !== '')
    .map((each) => el('p', {}, ...inline(each.trim())))
}
