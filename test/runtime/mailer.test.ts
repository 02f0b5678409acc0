import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMailer } from '../../src/runtime/mailer.ts'

const from = 'Shop <orders@shop.example>'
const mail = { to: 'ada@example.com', subject: 'x', text: 'x', id: 'ord_1.paid' }

/** Offers no encryption, like one whose greeting somebody on the way has changed. */
let server: SMTPServer
let address: string
const passwords: string[] = []
let received = 0
beforeAll(async () => {
  server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onAuth({ username, password }, _session, callback) {
      passwords.push(password ?? '')
      callback(null, { user: username })
    },
    onData(stream, _session, callback) {
      stream.resume()
      stream.on('end', () => {
        received++
        callback(null)
      })
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  address = `127.0.0.1:${(server.server.address() as AddressInfo).port}`
})
afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())))

describe('the login of a mail server', () => {
  it('is not told to one that does not encrypt: nothing was sent then, and it is tried again', async () => {
    const outcome = await createMailer(`smtp://shop:secret@${address}`, from).send(mail, 5000)
    expect(outcome).toEqual({ kind: 'not_sent', reason: 'smtp_not_encrypted', permanent: false })
    expect([passwords, received]).toEqual([[], 0])
  })

  it('is told to it where the settings say so', async () => {
    const outcome = await createMailer(`smtp://shop:secret@${address}?ignoreTLS=true`, from).send(mail, 5000)
    expect(outcome).toEqual({ kind: 'accepted' })
    expect([passwords, received]).toEqual([['secret'], 1])
  })
})

it('without a login, mail goes to a server that does not encrypt', async () => {
  expect(await createMailer(`smtp://${address}`, from).send(mail, 5000)).toEqual({ kind: 'accepted' })
})
