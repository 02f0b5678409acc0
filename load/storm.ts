/** `npm run storm`: a retry storm against the service, and the audit of what it left. Exits 1 where a promise is broken. */
import { writeFile } from 'node:fs/promises'
import { readOptions, type StormOptions, UsageError, usage } from './storm/options.ts'
import { isClean } from './storm/page.ts'
import { pageAsHtml } from './storm/page-html.ts'
import { pageAsText } from './storm/page-text.ts'
import { runStorm } from './storm/run.ts'
import type { Watcher } from './storm/weather.ts'
import { exitOnSignals } from './support/folder.ts'

function given(): StormOptions | null {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(`${error.message}\n\n${usage}`)
    process.exit(2)
  }
}

/** Progress goes to standard error, the page alone to standard output. */
const watcher: Watcher = {
  say(what) {
    process.stderr.write(`${process.stderr.isTTY ? '\r\x1b[K' : ''}${what}\n`)
  },
  line(text) {
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text.slice(0, process.stderr.columns - 1)}` : `${text}\n`)
  },
}

exitOnSignals()
const options = given()
if (options === null) {
  console.log(usage)
} else {
  const page = await runStorm(options, watcher)
  if (options.jsonFile !== undefined) await writeFile(options.jsonFile, `${JSON.stringify(page, null, 2)}\n`)
  if (options.htmlFile !== undefined) await writeFile(options.htmlFile, pageAsHtml(page))
  console.log(pageAsText(page))
  process.exitCode = isClean(page.verdict) ? 0 : 1
}
