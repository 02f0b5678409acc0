/** Does the work for each item, so many at once; results in the items' order. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
  atOnce = 24,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const place = next++
      results[place] = await work(items[place] as Item)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}
