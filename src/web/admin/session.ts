/** The operator's key: in this tab's session storage and nowhere else, and gone after a while without a person. */

const keyName = 'checkout.admin.key'
const activeName = 'checkout.admin.active'

/** Long enough to read an order's story, short enough for a screen that was left open. */
const idleMaxMs = 15 * 60_000

/** The key of a session that has not ended; null where a person has to sign in. */
export function signedInKey(): string | null {
  const key = sessionStorage.getItem(keyName)
  if (key === null) return null
  if (Date.now() - Number(sessionStorage.getItem(activeName)) < idleMaxMs) return key
  forgetKey()
  return null
}

export function keepKey(key: string): void {
  sessionStorage.setItem(keyName, key)
  stillHere()
}

export function forgetKey(): void {
  sessionStorage.removeItem(keyName)
  sessionStorage.removeItem(activeName)
}

function stillHere(): void {
  sessionStorage.setItem(activeName, String(Date.now()))
}

/** Calls back once, when nobody has touched the page for too long, also while the computer slept. */
export function watchIdle(onIdle: () => void): void {
  const isOver = () => sessionStorage.getItem(keyName) !== null && signedInKey() === null
  const check = () => {
    if (isOver()) onIdle()
  }
  const touch = () => {
    if (isOver()) onIdle()
    else if (sessionStorage.getItem(keyName) !== null) stillHere()
  }
  setInterval(check, 5000)
  document.addEventListener('visibilitychange', check)
  for (const event of ['pointerdown', 'keydown']) document.addEventListener(event, touch, { capture: true })
}
