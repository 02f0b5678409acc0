/** Elements without markup in strings: data can never become markup. */

type Child = Node | string | null | undefined | false

/** An element with attributes (`false` and undefined leave one out, `true` is an empty one) and children. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string | boolean | undefined>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

/** The element that the page itself has: throws where it is missing. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element
}
