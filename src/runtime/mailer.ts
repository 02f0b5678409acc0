/** Sends mail over SMTP, and tells apart what surely was not sent from what may have been. */
import { createTransport, type Transporter } from 'nodemailer'

interface OutgoingMail {
  to: string
  subject: string
  text: string
  /** Its name within the sender's domain, the same on every send. */
  id: string
}

/** Reasons are of a closed vocabulary, without the server's own words: those may name the recipient. */
type MailOutcome =
  | { kind: 'accepted' }
  /** The server said no, or was never reached: nothing was sent. */
  | { kind: 'not_sent'; reason: NotSentReason; permanent: boolean }
  /** It may have been sent. */
  | { kind: 'unknown'; reason: 'smtp_no_answer' | 'smtp_timeout' }

type NotSentReason = 'smtp_unreachable' | 'smtp_refused' | 'smtp_login_refused' | 'smtp_not_encrypted'

export interface Mailer {
  /** Never rejects. Gives up after `timeoutMs`. */
  send(mail: OutgoingMail, timeoutMs: number): Promise<MailOutcome>
}

/** A server that is silent for as long as this will hardly answer, ms. */
const silenceMaxMs = 10_000

/** `url` is `smtp://` or `smtps://`, with the login in it, which is sent over no connection that is not encrypted unless the
 * URL says `?ignoreTLS=true`; `from` as in a From header, with an address in a domain of ours. */
export function createMailer(url: string, from: string): Mailer {
  const transport = createTransport({
    url,
    requireTLS: needsEncryption(new URL(url)),
    connectionTimeout: silenceMaxMs,
    greetingTimeout: silenceMaxMs,
    socketTimeout: silenceMaxMs,
    // No pool: one connection an email leaves no doubt about which email a broken connection concerns.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const domain = /@([^>\s]+)>?\s*$/.exec(from)?.[1] ?? 'localhost'
  return {
    async send(mail, timeoutMs) {
      let timer: NodeJS.Timeout | undefined
      const timeout = new Promise<MailOutcome>((resolve) => {
        timer = setTimeout(resolve, timeoutMs, { kind: 'unknown', reason: 'smtp_timeout' })
      })
      try {
        return await Promise.race([deliver(transport, from, domain, mail), timeout])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** Whoever sits between us and the server could take STARTTLS out of its greeting, and read the password. */
function needsEncryption({ protocol, username, searchParams }: URL): boolean {
  return protocol === 'smtp:' && username !== '' && searchParams.get('ignoreTLS') !== 'true'
}

async function deliver(transport: Transporter, from: string, domain: string, mail: OutgoingMail): Promise<MailOutcome> {
  try {
    await transport.sendMail({
      from,
      // As an address, never to be read as a list.
      to: { name: '', address: mail.to },
      subject: mail.subject,
      text: mail.text,
      messageId: `<${mail.id}@${domain}>`,
      // https://www.rfc-editor.org/rfc/rfc3834: no answers from machines.
      headers: { 'Auto-Submitted': 'auto-generated' },
    })
    return { kind: 'accepted' }
  } catch (error) {
    return outcomeOf(error as SmtpError)
  }
}

interface SmtpError {
  code?: string
  responseCode?: number
  permanent?: boolean
  originalCode?: string
  timeoutType?: string
}

/** Not sent only where that is sure: the server refused in words, or was never talked to. */
function outcomeOf({ code, responseCode, permanent, originalCode, timeoutType }: SmtpError): MailOutcome {
  if (code === 'ETLS') return { kind: 'not_sent', reason: 'smtp_not_encrypted', permanent: false }
  if (code === 'EAUTH' || code === 'ENOAUTH') {
    return { kind: 'not_sent', reason: 'smtp_login_refused', permanent: false }
  }
  if (responseCode !== undefined && responseCode >= 400) {
    return { kind: 'not_sent', reason: 'smtp_refused', permanent: permanent === true }
  }
  // The recipient's address was refused before anything was sent.
  if (code === 'EENVELOPE') return { kind: 'not_sent', reason: 'smtp_refused', permanent: true }
  const unreached =
    code === 'EDNS' ||
    originalCode === 'ECONNREFUSED' ||
    timeoutType === 'CONNECT_TIMEOUT' ||
    timeoutType === 'GREETING_TIMEOUT' ||
    timeoutType === 'UPGRADE_TIMEOUT'
  return unreached
    ? { kind: 'not_sent', reason: 'smtp_unreachable', permanent: false }
    : { kind: 'unknown', reason: 'smtp_no_answer' }
}
