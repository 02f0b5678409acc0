/** Writes `openapi.yaml` and `openapi.json`; both are to be committed. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openapiFiles } from './openapi-document.ts'

for (const [name, text] of Object.entries(await openapiFiles())) {
  await writeFile(join(import.meta.dirname, '..', name), text)
  console.log(`wrote ${name}`)
}
