/** One answer of an operation: status, meaning, headers, codes, schema, examples. */
import { el } from '../common/dom.ts'
import type { Answer } from './contract.ts'
import { placeOf } from './errors.ts'
import { examplesView } from './examples-view.ts'
import { statusBadge } from './labels.ts'
import { inline } from './prose.ts'
import { schemaView } from './schema-view.ts'

export function answerView(answer: Answer, open: boolean): HTMLDetailsElement {
  const { status, description, codes } = answer
  const about =
    codes.length > 1
      ? el('span', { class: 'code-list' }, codes.map(({ code }) => code).join(', '))
      : el('span', {}, ...inline(description))
  const view = el('details', { class: 'answer' }, el('summary', {}, statusBadge(Number(status), status), about))
  // What nobody opens is not built.
  view.addEventListener('toggle', () => view.append(content(answer)), { once: true })
  view.open = open
  return view
}

function content({ status, headers, body, codes }: Answer): HTMLElement {
  return el(
    'div',
    { class: 'content' },
    codes.length > 1 &&
      el(
        'dl',
        { class: 'facts' },
        ...codes.flatMap(({ code, meaning }) => [
          el('dt', {}, el('a', { href: `#${placeOf(code)}` }, el('code', {}, code))),
          el('dd', {}, `${meaning}.`),
        ]),
      ),
    examplesView(status, body?.examples ?? []),
    body !== undefined &&
      el(
        'details',
        { class: 'part' },
        el('summary', {}, `Schema${body.schema.name === undefined ? '' : ` ${body.schema.name}`}`),
        el('p', { class: 'hint' }, body.type),
        schemaView(body.schema),
      ),
    headers.length > 0 &&
      el(
        'details',
        { class: 'part' },
        el('summary', {}, headers.length === 1 ? '1 header' : `${headers.length} headers`),
        el(
          'dl',
          { class: 'facts' },
          ...headers.flatMap(({ name, required, description }) => [
            el('dt', {}, el('code', {}, name)),
            el('dd', {}, ...inline(description), required ? '' : ' Not always there.'),
          ]),
        ),
      ),
    body === undefined && el('p', { class: 'hint' }, 'No body.'),
  )
}
