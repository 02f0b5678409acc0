/** The cart, kept by the browser and shared by its tabs. Each has a name; the next one after a purchase has another. */

export interface Cart {
  id: string
  /** By SKU; at least 1 each. */
  quantities: Record<string, number>
}

const name = 'shop.cart'
const mostOfOne = 99

export function readCart(): Cart {
  try {
    const stored = JSON.parse(localStorage.getItem(name) ?? 'null') as Cart | null
    if (stored !== null) return stored
  } catch {
    // Somebody else's; start afresh.
  }
  return write({ id: newCartId(), quantities: {} })
}

/** 0 takes the product out. */
export function setQuantity(sku: string, quantity: number): void {
  const { id, quantities } = readCart()
  const { [sku]: _before, ...others } = quantities
  write({ id, quantities: quantity < 1 ? others : { ...quantities, [sku]: Math.min(quantity, mostOfOne) } })
}

export function addToCart(sku: string): void {
  setQuantity(sku, (readCart().quantities[sku] ?? 0) + 1)
}

/** Another, empty cart, unless that has happened in another tab. */
export function leaveCart(id: string): void {
  if (readCart().id === id) write({ id: newCartId(), quantities: {} })
}

export function piecesIn(cart: Cart): number {
  return Object.values(cart.quantities).reduce((sum, quantity) => sum + quantity, 0)
}

/** Calls back after every change, also those of other tabs. */
export function watchCart(listener: () => void): void {
  listeners.add(listener)
  addEventListener('storage', (event) => {
    if (event.key === name || event.key === null) listener()
  })
}

const listeners = new Set<() => void>()

function write(cart: Cart): Cart {
  localStorage.setItem(name, JSON.stringify(cart))
  for (const listener of listeners) listener()
  return cart
}

function newCartId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10))
  return `cart-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
