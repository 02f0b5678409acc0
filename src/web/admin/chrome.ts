/** What stands above every page: where one is, the ways to go, the search, and the way out. */
import { el } from '../common/dom.ts'
import type { LiveFigures } from './live.ts'
import { button } from './parts.ts'
import type { Figures } from './types.ts'
import { atLeast } from './words.ts'

interface Way {
  label: string
  to: string
  /** How much there waits for a person. */
  waits?: (waiting: Figures['waiting']) => number
}

const ways: readonly Way[] = [
  { label: 'Start', to: '#/' },
  { label: 'Orders', to: '#/orders', waits: ({ needs_reconcile, flagged }) => needs_reconcile + flagged },
  { label: 'Jobs', to: '#/jobs', waits: ({ dead_jobs }) => dead_jobs },
  { label: 'Notifications', to: '#/events', waits: ({ mismatched_events }) => mismatched_events },
  { label: 'Emails', to: '#/emails', waits: ({ uncertain_emails, failed_emails }) => uncertain_emails + failed_emails },
  { label: 'Deliveries', to: '#/deliveries', waits: ({ undelivered }) => undelivered },
  { label: 'Reports', to: '#/reports' },
  { label: 'Audit log', to: '#/audit' },
]

export function topBar(live: LiveFigures, onSearch: (text: string) => void, onSignOut: () => void): HTMLElement {
  const shop = el('span', { class: 'shop' })
  const silent = el('span', { class: 'badge bad', role: 'status' })
  const links = ways.map((way) => {
    const count = el('span', { class: 'count' })
    return { way, count, link: el('a', { href: way.to }, way.label, count) }
  })
  const mark = () => {
    const [, here = ''] = /^#\/?([^/?]*)/.exec(location.hash) ?? []
    for (const { way, link } of links) {
      if (way.to !== `#/${here}`) link.removeAttribute('aria-current')
      else if (!link.hasAttribute('aria-current')) {
        link.setAttribute('aria-current', 'page')
        // On a narrow screen it may be out of sight.
        nav.scrollLeft = link.offsetLeft - nav.offsetLeft - 16
      }
    }
  }
  const nav = el('nav', { class: 'ways', 'aria-label': 'Pages' }, ...links.map(({ link }) => link))
  const bar = el(
    'div',
    {},
    el(
      'div',
      { class: 'bar' },
      el('a', { class: 'brand', href: '#/' }, 'Checkout operators'),
      shop,
      silent,
      searchForm(onSearch),
      button('Sign out', onSignOut),
    ),
    nav,
  )
  live.watch(({ latest, isSilent }) => {
    mark()
    silent.textContent = isSilent ? 'The service does not answer' : ''
    silent.hidden = !isSilent
    if (latest === null) return
    shop.textContent = `${latest.tenant.name} · signed in as ${latest.actor}`
    for (const { way, count } of links) {
      const waits = way.waits?.(latest.waiting) ?? 0
      count.textContent = waits === 0 ? '' : atLeast(waits)
      count.hidden = waits === 0
      count.title = 'wait for a person'
    }
  })
  for (const event of ['hashchange', 'popstate']) addEventListener(event, mark, { signal: live.signal })
  return bar
}

function searchForm(onSearch: (text: string) => void): HTMLElement {
  const field = el('input', {
    id: 'search',
    type: 'search',
    placeholder: 'Order id, key, reference or email',
    autocomplete: 'off',
    spellcheck: 'false',
    autocapitalize: 'none',
    maxlength: '300',
  })
  const form = el(
    'form',
    { class: 'search', role: 'search' },
    el(
      'label',
      { for: 'search', class: 'visually-hidden' },
      'Find an order by its id, idempotency key, provider reference or email',
    ),
    field,
    el('button', { type: 'submit' }, 'Find'),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const text = field.value.trim()
    if (text === '') {
      field.focus()
      return
    }
    field.value = ''
    onSearch(text)
  })
  return form
}
