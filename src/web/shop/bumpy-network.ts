/** The browser's `fetch`, with the mishaps that a visitor may ask for: what a phone in a tunnel does to a checkout. */

export const network = { isOffline: false, losesNextAnswer: false }

export const bumpyFetch: typeof fetch = async (input, init) => {
  if (network.isOffline) throw new TypeError('offline, as asked for')
  const response = await fetch(input, init)
  const isCheckout = init?.method === 'POST' && String(input).endsWith('/v1/checkouts')
  if (!isCheckout || !network.losesNextAnswer) return response
  network.losesNextAnswer = false
  dispatchEvent(new Event(mishapOver))
  await response.body?.cancel()
  throw new TypeError('the answer was lost, as asked for')
}

/** Dispatched at the window when a mishap has happened. */
export const mishapOver = 'mishapover'

export function setOffline(isOffline: boolean): void {
  network.isOffline = isOffline
  dispatchEvent(new Event(isOffline ? 'offline' : 'online'))
}

export function isOffline(): boolean {
  return network.isOffline || !navigator.onLine
}
