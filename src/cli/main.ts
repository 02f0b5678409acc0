/** The command line of those who run the service; acts on import. */
import { runCli } from './run.ts'

process.exitCode = await runCli(process.argv.slice(2), process.env, { out: process.stdout, err: process.stderr })
