/** Small things that several parts of the page show. */
import { el } from '../common/dom.ts'

export function methodLabel(method: string): HTMLElement {
  return el('span', { class: `method ${method.toLowerCase()}` }, method)
}

/** A path that may be broken before each slash. */
export function breakable(path: string): (Node | string)[] {
  return path
    .split('/')
    .slice(1)
    .flatMap((part) => [el('wbr'), `/${part}`])
}

/** `text` usually begins with the status itself, so that nothing is said by colour alone. */
export function statusBadge(status: number, text: string): HTMLElement {
  return el('span', { class: `badge ${status < 300 ? 'good' : status < 500 ? 'warn' : 'bad'}` }, text)
}
