/** The list of operations by tag, and the field that filters it. */
import { byId, el } from '../common/dom.ts'
import type { Contract, Operation } from './contract.ts'
import { methodLabel } from './labels.ts'

interface Entry {
  link: HTMLAnchorElement
  item: HTMLElement
  /** In lower case: all that the filter looks at. */
  text: string
}

/** Fills `#operations`; the result marks where the reader is: an operation's id, `errors` or `overview`. */
export function buildNavigation({ tags, operations }: Contract): (current: string) => void {
  const entries: Entry[] = []
  const groups = tags.map(({ name }) => {
    const own = operations.filter(({ tag }) => tag === name).map(entryOf)
    entries.push(...own)
    const title = el('span', { class: 'tag', id: `tag-${name}` }, name)
    const list = el('ul', { 'aria-labelledby': `tag-${name}` }, ...own.map(({ item }) => item))
    return { group: el('div', { class: 'group' }, title, list), own }
  })
  const pages = [page('overview', 'Overview'), page('errors', 'Error codes')]
  byId('operations').append(
    el('ul', { class: 'pages' }, ...pages.map(({ item }) => item)),
    ...groups.map(({ group }) => group),
  )

  const field = byId('filter') as HTMLInputElement
  const found = byId('found')
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
    for (const { item, text } of entries) item.hidden = !words.every((word) => text.includes(word))
    for (const { group, own } of groups) group.hidden = own.every(({ item }) => item.hidden)
    const count = entries.filter(({ item }) => !item.hidden).length
    found.textContent = words.length === 0 ? '' : count === 1 ? '1 operation' : `${count || 'No'} operations`
  }
  field.addEventListener('input', filter)
  field.addEventListener('keydown', (event) => {
    const first = entries.find(({ item }) => !item.hidden)
    if (event.key === 'Enter' && field.value !== '' && first !== undefined) location.hash = first.link.hash
    if (event.key !== 'Escape') return
    field.value = ''
    filter()
  })
  focusBySlash(field)

  return (current) => {
    for (const { link } of [...pages, ...entries]) {
      if (link.hash !== `#${current}`) link.removeAttribute('aria-current')
      else {
        link.setAttribute('aria-current', 'page')
        link.scrollIntoView({ block: 'nearest' })
      }
    }
  }
}

function entryOf(operation: Operation): Entry {
  const { id, method, path, summary, tag, answers } = operation
  const link = el('a', { href: `#${id}`, title: path }, methodLabel(method), el('span', {}, summary))
  const codes = answers.flatMap((answer) => answer.codes.map(({ code }) => code))
  const text = [id, method, path, summary, tag, ...codes].join(' ').toLowerCase()
  return { link, item: el('li', {}, link), text }
}

function page(hash: string, title: string): Pick<Entry, 'link' | 'item'> {
  const link = el('a', { href: `#${hash}` }, title)
  return { link, item: el('li', {}, link) }
}

/** As in many a reference: `/` goes to the filter, where nothing else is being typed. */
function focusBySlash(field: HTMLInputElement): void {
  document.addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    field.focus()
    field.select()
  })
}
