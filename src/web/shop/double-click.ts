/**
 * The second click of a double click is meant for what the first was on. What has come under the pointer since, as a dialog
 * closed or a button went, is not pressed by it.
 */
export function keepDoubleClicksTogether(): void {
  let first: string | Element | null = null
  addEventListener(
    'click',
    (event) => {
      const control = event.target instanceof Element ? event.target.closest('a, button, label, input') : null
      // A button that was drawn anew is the same.
      const pressed = (control instanceof HTMLElement ? control.dataset.focus : undefined) ?? control
      if (event.detail < 2) first = pressed
      else if (pressed !== null && pressed !== first) {
        event.preventDefault()
        event.stopPropagation()
      }
    },
    { capture: true },
  )
}
