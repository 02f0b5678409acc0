/** Runs as a process of its own between Node and Postgres: starts the server as its child, and shuts it down (fast:
 * open transactions are rolled back, a checkpoint is written) when its standard input closes. The other end of that
 * pipe belongs to the process that asked for the server, so the kernel closes it however that process ends, SIGKILL
 * included, and no server is left behind.
 *
 * Arguments: pid of the asking process (read by the next start, see postmaster.ts), `uid:gid` or `-`,
 * then the server's command line. Exits with the server's exit code. */
import { spawn } from 'node:child_process'

const [, account = '-', command = '', ...args] = process.argv.slice(2)
const [uid, gid] = account.split(':').map(Number)

const server = spawn(command, args, {
  cwd: '/',
  stdio: ['ignore', 'ignore', 'inherit'],
  ...(account === '-' ? {} : { uid: Number(uid), gid: Number(gid) }),
})

server.on('error', (error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(127)
})
server.on('exit', (code) => process.exit(code ?? 1))

// A signal to the whole group (a closing terminal, a service manager's stop) must not take the server away from a
// process that is still finishing its requests: only the pipe counts.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
// Postgres keeps the write end of standard error; losing the reader must not end the watchdog.
process.stderr.on('error', () => {})

let stopping = false
const stop = () => {
  if (stopping) return
  stopping = true
  server.kill('SIGINT')
  // The final checkpoint of a large, busy server can take a while; past these limits it recovers at its next start.
  setTimeout(() => server.kill('SIGQUIT'), 60_000).unref()
  setTimeout(() => server.kill('SIGKILL'), 75_000).unref()
}
process.stdin.on('end', stop).on('close', stop).on('error', stop).resume()
