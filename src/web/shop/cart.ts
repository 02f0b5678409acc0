/** The cart, kept by the browser and shared by its tabs. Each has a name; the next one after a purchase has another. */
import { browserStorage } from '../client/index.ts'

export interface Cart {
  id: string
  /** By SKU; 1 to 99 each. */
  quantities: Record<string, number>
  /** The cart before, which was paid: its receipt has not been looked at. */
  paid?: string
}

const name = 'shop.cart'
const mostOfOne = 99
let storage = browserStorage()

export function readCart(): Cart {
  return parse(storage.getItem(name)) ?? write({ id: newCartId(), quantities: {} })
}

/** 0 takes the product out. */
export function setQuantity(sku: string, quantity: number): void {
  const cart = readCart()
  const { [sku]: _before, ...others } = cart.quantities
  write({
    ...cart,
    quantities: quantity < 1 ? others : { ...cart.quantities, [sku]: Math.min(quantity, mostOfOne) },
  })
}

export function addToCart(sku: string): void {
  setQuantity(sku, (readCart().quantities[sku] ?? 0) + 1)
}

/** Another cart, unless that has happened in another tab: without what was paid, with what was added since. */
export function leavePaidCart(id: string, paid: readonly { sku: string; quantity: number }[]): void {
  const cart = readCart()
  if (cart.id === id) write({ id: newCartId(), quantities: restOf(cart, paid), paid: id })
}

/** Another, empty cart. */
export function startAfresh(): void {
  write({ id: newCartId(), quantities: {} })
}

/** What is in the cart beyond these lines, by SKU. */
export function restOf(cart: Cart, lines: readonly { sku: string; quantity: number }[]): Record<string, number> {
  const rest = { ...cart.quantities }
  for (const { sku, quantity } of lines) rest[sku] = (rest[sku] ?? 0) - quantity
  return Object.fromEntries(Object.entries(rest).filter(([, quantity]) => quantity > 0))
}

export function receiptSeen(id: string): void {
  const { paid, ...cart } = readCart()
  if (paid === id) write(cart)
}

/** Whether the cart outlives the page: a browser may keep nothing for it. */
export function isKept(): boolean {
  try {
    return storage === localStorage
  } catch {
    return false
  }
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
  try {
    storage.setItem(name, JSON.stringify(cart))
  } catch {
    // Full. For as long as the page lives, then.
    storage = browserStorage()
    storage.setItem(name, JSON.stringify(cart))
  }
  for (const listener of listeners) listener()
  return cart
}

/** As far as it makes sense: somebody else may have written it, or an older page. */
function parse(text: string | null): Cart | undefined {
  try {
    const { id, quantities, paid } = JSON.parse(text ?? '{}') as Record<string, unknown>
    if (typeof id !== 'string' || !/^[\x21-\x7e]{1,200}$/.test(id)) return undefined
    const lines = Object.entries(typeof quantities === 'object' ? (quantities ?? {}) : {}).filter(([, quantity]) =>
      isQuantity(quantity),
    )
    return { id, quantities: Object.fromEntries(lines), ...(typeof paid === 'string' ? { paid } : {}) }
  } catch {
    return undefined
  }
}

function isQuantity(it: unknown): boolean {
  return Number.isInteger(it) && Number(it) >= 1 && Number(it) <= mostOfOne
}

function newCartId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10))
  return `cart-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
