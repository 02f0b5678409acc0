/** One operation: what it does, what it takes, what it answers, and the form that tries it. */
import { el } from '../common/dom.ts'
import { answerView } from './answer-view.ts'
import type { Contract, Operation, Parameter } from './contract.ts'
import { examplesView } from './examples-view.ts'
import { breakable, methodLabel } from './labels.ts'
import type { DemoKeys } from './memory.ts'
import { paragraphs } from './prose.ts'
import { typeInWords } from './schema.ts'
import { details, schemaView } from './schema-view.ts'
import { tryForm } from './try-form.ts'

export function operationPage(contract: Contract, operation: Operation, demoKeys: DemoKeys): HTMLElement {
  const { id, method, path, summary, description, tag, roles, parameters, body, answers } = operation
  const reference = el(
    'div',
    { class: 'reference' },
    ...(parameters.length === 0
      ? []
      : [el('h2', {}, 'Parameters'), el('ul', { class: 'members' }, ...parameters.map(parameterItem))]),
    ...(body === undefined
      ? []
      : [
          el('h2', {}, 'Body'),
          el('p', { class: 'hint' }, `${body.type}${body.required ? '' : ', may be left out'}`),
          schemaView(body.schema),
          examplesView('the body', body.examples),
        ]),
    el('h2', {}, 'Answers'),
    ...answers.map((answer, index) => answerView(answer, index === 0)),
    neighbours(contract, operation),
  )
  return el(
    'article',
    { class: 'page operation' },
    el(
      'header',
      {},
      el('p', { class: 'over' }, `${tag} · ${id}`),
      el('h1', { tabindex: '-1' }, summary),
      el('p', { class: 'route' }, methodLabel(method), el('code', {}, ...breakable(path))),
      ...paragraphs(description),
      el('p', { class: 'hint' }, roles.length === 0 ? 'No key is needed.' : `Key: ${roles.join(', ')}.`),
    ),
    tryForm(operation, demoKeys),
    reference,
  )
}

function parameterItem({ name, in: place, required, schema, description }: Parameter): HTMLElement {
  return el(
    'li',
    {},
    el(
      'div',
      {},
      el('code', { class: 'name' }, name),
      ' ',
      el('span', { class: 'type' }, `${typeInWords(schema)}, ${place}`),
      ' ',
      el('span', { class: required ? 'required' : 'optional' }, required ? 'required' : 'optional'),
    ),
    ...details(description === '' ? schema : { ...schema, description }),
  )
}

function neighbours({ operations }: Contract, operation: Operation): HTMLElement {
  const index = operations.indexOf(operation)
  const link = (to: Operation | undefined, word: string) =>
    to && el('a', { class: 'button', href: `#${to.id}` }, el('span', { class: 'hint' }, word), to.summary)
  return el(
    'nav',
    { class: 'neighbours', 'aria-label': 'Neighbouring operations' },
    link(operations[index - 1], 'Before'),
    link(operations[index + 1], 'Next'),
  )
}
