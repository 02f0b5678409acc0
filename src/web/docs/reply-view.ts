/** The answer to a call that was tried: what it means, and all that came. */
import { el } from '../common/dom.ts'
import { codeBlock } from './code-view.ts'
import type { Operation } from './contract.ts'
import { statusBadge } from './labels.ts'
import { inline } from './prose.ts'
import type { Reply } from './send.ts'

/** `before` are the earlier answers to the same idempotency key, oldest first. */
export function replyView(operation: Operation, reply: Reply, before: readonly Reply[]): HTMLElement {
  const { status, statusText, headers, text, durationMs, replayed } = reply
  const problem = parsed(text) as { new_key_safe?: boolean } | undefined
  return el(
    'div',
    { class: 'reply' },
    el(
      'p',
      { class: 'headline' },
      statusBadge(status, `${status} ${statusText}`.trim()),
      replayed && el('span', { class: 'badge' }, 'Replayed'),
      el('span', { class: 'hint' }, milliseconds(durationMs)),
    ),
    el('p', {}, ...inline(meaningOf(operation, reply))),
    typeof problem?.new_key_safe === 'boolean' &&
      el(
        'p',
        { class: 'hint' },
        problem.new_key_safe
          ? 'No charge of this attempt exists or can still appear: a new key is safe.'
          : 'A charge of this attempt may exist: send the same request with the same key.',
      ),
    before.length > 0 && comparison([...before, reply]),
    text === '' ? el('p', { class: 'hint' }, 'No body.') : bodyBlock(text),
    el(
      'details',
      { class: 'part' },
      el('summary', {}, `${headers.length} headers`),
      codeBlock('Headers of the answer', headers.map(([name, value]) => `${name}: ${value}`).join('\n')),
    ),
  )
}

/** What repeats with one key brought, so that one sees that they brought the same. */
function comparison(replies: readonly Reply[]): HTMLElement {
  const [first] = replies
  return el(
    'div',
    { class: 'comparison' },
    el('h3', {}, 'Answers to this key'),
    el(
      'ol',
      {},
      ...replies.map((reply, index) => {
        const same = reply.status === first?.status && reply.text === first.text
        const what = index === 0 ? '' : same ? ', the same byte for byte' : ', another answer'
        return el(
          'li',
          {},
          `${reply.status}${reply.replayed ? ', replayed' : ''}${what}, ${milliseconds(reply.durationMs)}`,
        )
      }),
    ),
  )
}

function meaningOf({ answers }: Operation, { status, text }: Reply): string {
  const answer = answers.find((each) => each.status === String(status))
  if (answer === undefined) return 'The contract does not foresee this status.'
  const { code } = (parsed(text) ?? {}) as { code?: unknown }
  const known = answer.codes.find((each) => each.code === code)
  return known === undefined ? answer.description : `\`${known.code}\`: ${known.meaning}.`
}

function bodyBlock(text: string): HTMLElement {
  const value = parsed(text)
  return value === undefined
    ? codeBlock('Body of the answer', text)
    : codeBlock('Body of the answer', JSON.stringify(value, null, 2), 'json')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function milliseconds(duration: number): string {
  return `${Math.max(1, Math.round(duration))} ms`
}
