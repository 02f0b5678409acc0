/** The operator's console: signed in or not, which page the address asks for, and what stands around every page. */
import { byId, el } from '../common/dom.ts'
import { Api, NoAnswer, Refusal } from './api.ts'
import { topBar } from './chrome.ts'
import { LiveFigures } from './live.ts'
import { pageFor } from './pages.ts'
import { button, notice, problemText } from './parts.ts'
import { forgetKey, keepKey, signedInKey, watchIdle } from './session.ts'
import { signInForm } from './sign-in.ts'
import { routeNow, type View } from './view.ts'

const main = byId('main')
const top = byId('top')
const outcome = el('div', { id: 'outcome', role: 'status', tabindex: '-1' })

interface Session {
  api: Api
  live: LiveFigures
}

let session: Session | null = null
/** Of the page that is shown. */
let shown = new AbortController()

function start(): void {
  const key = signedInKey()
  if (key === null) askForKey(null)
  else signIn(key)
}

function signIn(key: string): void {
  const api = new Api(key, () => signOut('This key is not accepted any more. Sign in again.'))
  const live = new LiveFigures(api)
  session = { api, live }
  top.replaceChildren(topBar(live, search, () => signOut('You have signed out.')))
  live.begin().catch(() => live.refresh())
  void show()
}

function signOut(why: string): void {
  if (session === null) return
  session.live.end()
  session = null
  forgetKey()
  askForKey(why)
}

function askForKey(why: string | null): void {
  shown.abort()
  top.replaceChildren()
  outcome.replaceChildren()
  document.title = 'Sign in - Operators - Checkout'
  const form = signInForm(why, (key) => {
    keepKey(key)
    signIn(key)
  })
  main.replaceChildren(form)
  byId('key').focus()
}

/** Shows what the address asks for. `isSame`: the page that is shown already, as things are now. */
async function show(isSame = false): Promise<void> {
  if (session === null) return
  const { api, live } = session
  shown.abort()
  shown = new AbortController()
  const { signal } = shown
  const route = routeNow()
  if (!isSame) {
    outcome.replaceChildren()
    main.setAttribute('aria-busy', 'true')
  }
  const waiting = setTimeout(() => {
    if (!isSame) main.replaceChildren(el('p', { class: 'loading', role: 'status' }, 'Loading…'))
  }, 250)
  const view: View = { api, route, live, signal, reload: () => show(true), find: search, say }
  try {
    const { title, beside, content } = await pageFor(route)(view)
    if (signal.aborted) return
    put(title, isSame, el('div', { class: 'heading' }, heading(title), beside), outcome, ...content.filter(isThere))
  } catch (error) {
    if (signal.aborted || session === null) return
    // What the service says is shown; anything else is a fault of this page, for whoever looks at its console.
    if (!(error instanceof Refusal || error instanceof NoAnswer)) reportError(error)
    const again = button('Try again', () => void show())
    put(
      'Not shown',
      isSame,
      heading('Not shown'),
      outcome,
      notice('bad', problemText(error, 'read')),
      el('p', {}, again),
    )
  } finally {
    clearTimeout(waiting)
    if (!signal.aborted) main.removeAttribute('aria-busy')
  }
}

function put(title: string, isSame: boolean, ...content: (Node | string)[]): void {
  const open = isSame ? [...main.querySelectorAll('details[open][id]')].map(({ id }) => id) : []
  const focused = document.activeElement?.id
  main.replaceChildren(...content)
  document.title = `${title} - Operators - Checkout`
  for (const id of open) document.getElementById(id)?.setAttribute('open', '')
  if (!isSame) {
    scrollTo(0, 0)
    main.querySelector('h1')?.focus({ preventScroll: true })
  } else if (focused !== undefined && focused !== '') document.getElementById(focused)?.focus({ preventScroll: true })
}

function heading(title: string): HTMLElement {
  return el('h1', { tabindex: '-1' }, title)
}

function isThere(piece: Node | string | null | undefined | false): piece is Node | string {
  return piece !== null && piece !== undefined && piece !== false
}

function say(what: Node): void {
  outcome.replaceChildren(what)
  outcome.focus()
  void session?.live.refresh()
}

function search(text: string): void {
  history.pushState({ search: text }, '', '#/search')
  void show()
}

// Which of the two comes, or both, depends on how the address was changed.
let isAsked = false
function onAddress(): void {
  if (isAsked) return
  isAsked = true
  setTimeout(() => {
    isAsked = false
    void show()
  })
}
addEventListener('hashchange', onAddress)
addEventListener('popstate', onAddress)
byId('skip').addEventListener('click', (event) => {
  // The address says which page is shown; it must not change.
  event.preventDefault()
  main.querySelector('h1')?.focus()
})
watchIdle(() => signOut('You were signed out after 15 minutes without you.'))
start()
