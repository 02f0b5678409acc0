/** Whether an error carries one of these codes, as Node's system errors and Postgres's do. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(codeOf(error) ?? '')
}

/** The error's `code`: ECONNREFUSED and the like from Node, the SQLSTATE from Postgres. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
