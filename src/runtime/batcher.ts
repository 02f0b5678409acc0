/**
 * Puts calls that arrive together into groups, so that they share one statement and one commit. Nothing waits for a
 * timer: a group is what a turn of the event loop has brought, and while `maxInFlight` groups are running, what arrives
 * waits and forms the next one.
 */
interface BatcherOptions<Item, Result> {
  maxGroup: number
  maxInFlight: number
  /** Items of different lanes never share a group. */
  laneOf(item: Item): string
  /** Items that share an identity never share a group; the twin waits for the next one. */
  identitiesOf(item: Item): readonly string[]
  /** One result per item, in the items' order. */
  run(lane: string, items: readonly Item[]): Promise<Result[]>
  /** Whether a group's failure says something of all of its items; otherwise they are run one by one. */
  failsAll(error: unknown): boolean
  /** Told of each group that is run together. */
  onGroup?(size: number): void
}

interface Waiting<Item, Result> {
  item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const lanes = new Map<string, { waiting: Waiting<Item, Result>[]; inFlight: number }>()

  function takeGroup(waiting: Waiting<Item, Result>[]): Waiting<Item, Result>[] {
    const group: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const seen = new Set<string>()
    for (const entry of waiting) {
      const identities = group.length < options.maxGroup ? options.identitiesOf(entry.item) : []
      if (group.length >= options.maxGroup || identities.some((identity) => seen.has(identity))) left.push(entry)
      else group.push(entry)
      for (const identity of identities) seen.add(identity)
    }
    waiting.splice(0, waiting.length, ...left)
    return group
  }

  async function runGroup(lane: string, group: Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.run(
        lane,
        group.map((entry) => entry.item),
      )
      group.forEach((entry, index) => {
        entry.resolve(results[index] as Result)
      })
    } catch (error) {
      if (group.length === 1 || options.failsAll(error)) {
        for (const entry of group) entry.reject(error)
        return
      }
      // One item's fault must not be its neighbours'.
      for (const entry of group) await runGroup(lane, [entry])
    }
  }

  function pump(lane: string): void {
    const state = lanes.get(lane)
    if (state === undefined) return
    while (state.inFlight < options.maxInFlight && state.waiting.length > 0) {
      const group = takeGroup(state.waiting)
      state.inFlight += 1
      options.onGroup?.(group.length)
      void runGroup(lane, group).finally(() => {
        state.inFlight -= 1
        if (state.waiting.length > 0) pumpSoon(lane)
        else if (state.inFlight === 0) lanes.delete(lane)
      })
    }
  }

  /** After the other requests that have arrived by now: they would be the next group otherwise, and this one small. A
   * second turn of the loop would save some CPU more, and have everybody march in step behind a slow provider. */
  function pumpSoon(lane: string): void {
    setImmediate(pump, lane)
  }

  return (item) =>
    new Promise<Result>((resolve, reject) => {
      const lane = options.laneOf(item)
      let state = lanes.get(lane)
      if (state === undefined) {
        state = { waiting: [], inFlight: 0 }
        lanes.set(lane, state)
      }
      state.waiting.push({ item, resolve, reject })
      if (state.waiting.length === 1) pumpSoon(lane)
    })
}
