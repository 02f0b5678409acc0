/** Takes every mail and delivers none: what would have been sent is shown on a page, newest first, until it stops. */
import { createServer } from 'node:http'
import { simpleParser } from 'mailparser'
import { SMTPServer } from 'smtp-server'

const keptMax = 200
const mails = []

const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  async onData(stream, _session, done) {
    try {
      const { from, to, subject, text, date } = await simpleParser(stream)
      mails.unshift({ from: from?.text, to: [to].flat()[0]?.text, subject, text, date })
      mails.length = Math.min(mails.length, keptMax)
      done()
    } catch (error) {
      done(error)
    }
  },
})

const http = createServer((request, response) => {
  const headers = { 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' }
  if (request.url === '/mails') {
    response.writeHead(200, { ...headers, 'content-type': 'application/json' }).end(JSON.stringify(mails))
  } else if (request.url === '/') {
    response.writeHead(200, { ...headers, 'content-type': 'text/html; charset=utf-8' }).end(page())
  } else {
    response.writeHead(404, headers).end()
  }
})

function page() {
  const shown = mails.map(
    ({ from, to, subject, text, date }) =>
      `<h2>${escaped(subject)}</h2><p>${escaped(date?.toISOString())}: ${escaped(from)} to ${escaped(to)}</p>` +
      `<pre>${escaped(text)}</pre>`,
  )
  return `<!doctype html><meta charset="utf-8"><title>Mails</title><h1>Mails</h1>${shown.join('<hr>') || '<p>None yet.</p>'}`
}

function escaped(text = '') {
  return String(text).replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

smtp.listen(1025)
http.listen(1080)
process.once('SIGTERM', () => {
  smtp.close()
  http.close()
  http.closeAllConnections()
})
