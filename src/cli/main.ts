/** The command line of those who run the service; acts on import. */
import { hasCode } from '../runtime/error-code.ts'
import { runCli } from './run.ts'

// Whoever reads the result may have read enough (`… | head`): what was to be done has been done.
process.stdout.on('error', (error) => {
  if (!hasCode(error, 'EPIPE')) throw error
})
process.exitCode = await runCli(process.argv.slice(2), process.env, { out: process.stdout, err: process.stderr })
