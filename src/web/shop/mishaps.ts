/** Mishaps that a visitor can ask for, to see that the cart is still paid at most once. */
import { el } from '../common/dom.ts'
import { mishapOver, network, setOffline } from './bumpy-network.ts'
import { readCart } from './cart.ts'
import { linesOf } from './lines.ts'
import { postDemo, type Shop } from './shop.ts'

export function mishapsPanel(shop: Shop): HTMLElement {
  const said = el('p', { role: 'status', class: 'hint' })
  const say = (text: string) => {
    said.textContent = text
  }
  const button = (label: string, act: () => Promise<string> | string) => {
    const made = el('button', { type: 'button', class: 'small' }, label)
    made.addEventListener('click', async () => {
      try {
        say(await act())
      } catch {
        say('The service could not be reached.')
      }
    })
    return el('li', {}, made)
  }
  const bank = (mishap: string, text: string) => async () => {
    await postDemo('mishap', { mishap })
    return text
  }

  const lose = el('input', { type: 'checkbox', id: 'lose-answer' })
  lose.addEventListener('change', () => {
    network.losesNextAnswer = lose.checked
    say(lose.checked ? 'The next answer to a payment will not arrive in this tab.' : '')
  })
  addEventListener(mishapOver, () => {
    lose.checked = false
    say('The answer was lost on its way.')
  })
  const offline = el('input', { type: 'checkbox', id: 'offline' })
  offline.addEventListener('change', () => {
    setOffline(offline.checked)
    say(offline.checked ? 'This tab reaches nothing.' : 'Connected again.')
  })

  const first = () => linesOf(readCart(), shop)[0]?.product ?? [...shop.products.values()][0]
  return el(
    'div',
    { class: 'mishaps' },
    el('h3', {}, 'Between you and the shop'),
    check(lose, 'Lose the next answer'),
    check(offline, 'Be offline'),
    el('h3', {}, 'Between the shop and the bank'),
    el(
      'ul',
      {},
      button('Lose the bank’s next answer', bank('answer_lost', 'The bank will charge, and its answer will be lost.')),
      button('Bank not reachable once', bank('unreachable', 'The next payment will not reach the bank at first.')),
      button('Bank slow once', bank('slow', 'The bank will take 4 seconds. Reload, or press Pay in a second tab.')),
    ),
    el('h3', {}, 'In the shop, without telling you'),
    el(
      'ul',
      {},
      button('Raise a price', async () => {
        const product = first()
        if (product === undefined) return 'There is nothing to sell.'
        await postDemo('shelf', { sku: product.sku, unit_price: product.unit_price + 100 })
        return `${shop.nameOf(product.sku)} costs more now. This page does not know yet.`
      }),
      button('Sell out', async () => {
        const product = first()
        if (product === undefined) return 'There is nothing to sell.'
        await postDemo('shelf', { sku: product.sku, available: 0 })
        return `The last ${shop.nameOf(product.sku)} was sold. This page does not know yet.`
      }),
      button('Fill the shelves', async () => {
        for (const { sku } of shop.products.values()) await postDemo('shelf', { sku, refill: true })
        return 'Everything can be had again, at the old prices.'
      }),
    ),
    said,
  )
}

function check(input: HTMLInputElement, label: string): HTMLElement {
  return el('label', { class: 'check', for: input.id }, input, label)
}
