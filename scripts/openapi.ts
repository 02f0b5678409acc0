/** Writes `openapi.yaml`. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openapiYaml } from './openapi-document.ts'

await writeFile(join(import.meta.dirname, '../openapi.yaml'), await openapiYaml())
