/** The browser client's types are the contract's. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { clientTypes } from '../../scripts/client-types-document.ts'

it('the client knows the contract as it is: otherwise run `npm run openapi`', async () => {
  const committed = await readFile(resolve(import.meta.dirname, '../../src/web/client/contract.ts'), 'utf8')
  expect(committed).toBe(await clientTypes())
})
