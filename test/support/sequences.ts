/** Every sequence of that length, repeats included. Shorter ones are their beginnings. */
export function sequencesOf<Item>(length: number, of: readonly Item[]): Item[][] {
  if (length === 0) return [[]]
  return sequencesOf(length - 1, of).flatMap((each) => of.map((item) => [...each, item]))
}
