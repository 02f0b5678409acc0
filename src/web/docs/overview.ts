/** The first page: what the API is, whose keys open what, and all operations. */
import { el } from '../common/dom.ts'
import type { Contract } from './contract.ts'
import { breakable, methodLabel } from './labels.ts'
import { inline, paragraphs } from './prose.ts'

export function overviewPage({ title, description, roles, tags, operations }: Contract): HTMLElement {
  return el(
    'article',
    { class: 'page' },
    el('h1', { tabindex: '-1' }, `${title} API`),
    el('div', { class: 'lead' }, ...paragraphs(description)),
    el(
      'p',
      { class: 'actions' },
      el('a', { class: 'button primary', href: '#createCheckout' }, 'Try a checkout'),
      el('a', { class: 'button', href: '#errors' }, 'Error codes'),
    ),
    el('h2', {}, 'Address'),
    el('p', {}, el('code', {}, location.origin)),
    el('h2', {}, 'Keys'),
    el('p', {}, 'A key is sent as ', el('code', {}, 'Authorization: Bearer <key>'), '; it belongs to one tenant.'),
    el(
      'dl',
      { class: 'facts' },
      ...roles.flatMap((role) => [el('dt', {}, role.name), el('dd', {}, ...inline(role.description))]),
    ),
    el('h2', {}, 'Operations'),
    ...tags.flatMap((tag) => [
      el('h3', {}, tag.name),
      el('p', {}, ...inline(tag.description)),
      el(
        'ul',
        { class: 'operation-list' },
        ...operations
          .filter((operation) => operation.tag === tag.name)
          .map(({ id, method, path, summary }) =>
            el(
              'li',
              {},
              methodLabel(method),
              el('a', { href: `#${id}` }, summary),
              el('code', { class: 'path' }, ...breakable(path)),
            ),
          ),
      ),
    ]),
  )
}
