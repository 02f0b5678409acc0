/** Rows of values as aligned columns under their names. */
export function table(rows: readonly Readonly<Record<string, string | number | boolean | null>>[]): string[] {
  const [first] = rows
  if (first === undefined) return ['none']
  const names = Object.keys(first)
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '-')))]
  const widths = names.map((_, column) => Math.max(...cells.map((row) => (row[column] as string).length)))
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join('  ')
      .trimEnd(),
  )
}
