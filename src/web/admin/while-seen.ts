/** Something that a page does every so often, one at a time, while it can be seen and until another page is shown. */
export function whileSeen(signal: AbortSignal, everyMs: number, work: () => Promise<void>): void {
  let isUnderWay = false
  const timer = setInterval(async () => {
    if (document.hidden || isUnderWay) return
    isUnderWay = true
    try {
      await work()
    } finally {
      isUnderWay = false
    }
  }, everyMs)
  signal.addEventListener('abort', () => clearInterval(timer))
}
