/** Writes the browser client's types. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { clientTypes } from './client-types-document.ts'

await writeFile(join(import.meta.dirname, '../src/web/client/contract.ts'), await clientTypes())
