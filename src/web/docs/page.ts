/** The reference of the API: shows what the address's hash names, an operation, the error codes or one of them. */
import { byId, el } from '../common/dom.ts'
import { type Contract, loadContract } from './contract.ts'
import { errorsPage, placeOf } from './errors.ts'
import { type DemoKeys, loadDemoKeys } from './memory.ts'
import { buildNavigation } from './navigation.ts'
import { operationPage } from './operation.ts'
import { overviewPage } from './overview.ts'

const menu = byId('menu')

try {
  const [contract, demoKeys] = await Promise.all([loadContract(), loadDemoKeys()])
  const mark = buildNavigation(contract)
  const show = (moved: boolean) => {
    const hash = decodeURIComponent(location.hash.slice(1))
    const { page, current, title } = pageFor(contract, demoKeys, hash)
    byId('main').replaceChildren(page)
    document.title = `${title} - ${contract.title} API`
    mark(current)
    openMenu(false)
    const target = document.getElementById(hash) ?? page.querySelector('h1')
    // Who follows a link is to be read what it led to.
    if (moved || target?.id === hash) target?.focus({ preventScroll: true })
    if (target?.id === hash) target.scrollIntoView({ block: 'center' })
    else scrollTo(0, 0)
  }
  addEventListener('hashchange', () => show(true))
  show(false)
} catch (error) {
  byId('main').replaceChildren(
    el('h1', {}, 'API'),
    el('p', { class: 'notice bad', role: 'alert' }, `The contract could not be loaded: ${(error as Error).message}.`),
    el('p', {}, el('a', { href: '/openapi.yaml' }, 'openapi.yaml')),
  )
}

function pageFor(contract: Contract, demoKeys: DemoKeys, hash: string) {
  const operation = contract.operations.find(({ id }) => id === hash)
  if (operation !== undefined) {
    return { page: operationPage(contract, operation, demoKeys), current: operation.id, title: operation.summary }
  }
  if (hash === 'errors' || hash.startsWith(placeOf(''))) {
    return { page: errorsPage(contract), current: 'errors', title: 'Error codes' }
  }
  const page = overviewPage(contract)
  if (hash !== '' && hash !== 'overview')
    page.prepend(el('p', { class: 'notice warn' }, `There is no operation "${hash}".`))
  return { page, current: 'overview', title: 'Overview' }
}

// The hash names what is shown, so it is not spent on this.
byId('skip').addEventListener('click', (event) => {
  event.preventDefault()
  byId('main').focus()
})
// A link to what is shown already changes no hash, but the menu has done its work.
byId('sidebar').addEventListener('click', (event) => {
  if (event.target instanceof Element && event.target.closest('a') !== null) openMenu(false)
})
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') openMenu(false)
})
menu.addEventListener('click', () => openMenu(!document.body.classList.contains('menu-open')))

function openMenu(open: boolean): void {
  document.body.classList.toggle('menu-open', open)
  menu.setAttribute('aria-expanded', String(open))
}
