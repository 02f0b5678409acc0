/** Reads what pages for people say, so that tests can hold them to it. */

/** From a heading's line to the next heading of its level or above. Throws where there is none. */
export function sectionOf(page: string, heading: string): string {
  const lines = page.split('\n')
  const at = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading)
  if (at === -1) throw new Error(`there is no heading "${heading}"`)
  const level = /^#+/.exec(lines[at] ?? '')?.[0].length ?? 1
  const end = lines.findIndex((line, i) => i > at && (/^#+(?= )/.exec(line)?.[0].length ?? 7) <= level)
  return lines.slice(at, end === -1 ? undefined : end).join('\n')
}

/** The rows of all tables, without their heads, cell by cell. */
export function tableRows(section: string): string[][] {
  const lines = section.split('\n')
  return lines
    .filter((line, i) => line.startsWith('|') && !/^\|[-|]+\|$/.test(line) && !/^\|[-|]+\|$/.test(lines[i + 1] ?? ''))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
}
