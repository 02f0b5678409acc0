/** A real SMTP server that keeps what it is given, and misbehaves where a test says so. */
import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface ReceivedMail {
  from: string
  to: string[]
  headers: Map<string, string>
  text: string
}

/** `refuse`: with that SMTP code, after the whole message. `vanish`: keeps the message and breaks the connection without a word.
 * `hang`: keeps it and never answers. */
export type MailFault = { refuse: number } | 'vanish' | 'hang'

export interface MailServer {
  url: string
  /** What it has kept, also where it did not say so. */
  received: ReceivedMail[]
  /** For the next messages, one each. */
  faults: MailFault[]
  stop(): Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const received: ReceivedMail[] = []
  const faults: MailFault[] = []
  const sockets = new Set<Socket>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const fault = faults.shift()
        if (typeof fault === 'object') {
          callback(Object.assign(new Error('No, ada@example.com'), { responseCode: fault.refuse }))
          return
        }
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          ...parsed(Buffer.concat(chunks).toString()),
        })
        if (fault === 'vanish') for (const socket of sockets) socket.destroy()
        else if (fault !== 'hang') callback(null)
      })
    },
  })
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    received,
    faults,
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

function parsed(message: string): { headers: Map<string, string>; text: string } {
  const [head = '', ...body] = message.split('\r\n\r\n')
  const lines = head.replace(/\r\n[ \t]+/g, ' ').split('\r\n')
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  const text = body.join('\r\n\r\n')
  return { headers, text: headers.get('content-transfer-encoding') === 'quoted-printable' ? unquoted(text) : text }
}

/** https://www.rfc-editor.org/rfc/rfc2045#section-6.7 */
function unquoted(text: string): string {
  const bytes = text
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
