// A real SMTP server under test: STARTTLS, credentials, and the mails that
// arrived, parsed.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import readline from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

// startMail resolves once the server listens; serve is what startControl needs
// to deliver to it.
export async function startMail(t) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'porchlight-mail-'))
  const program = path.join(dir, 'mailserver')
  const ca = path.join(dir, 'ca.pem')
  await run('go', ['build', '-o', program, './test/mailserver/cmd'], { cwd: root })
  const child = spawn(program, ['--ca', ca, '--user', 'porch', '--password', 'light'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
    await rm(dir, { recursive: true, force: true })
  })
  const mails = []
  const waiting = new Set()
  const lines = readline.createInterface({ input: child.stdout })
  const { address } = JSON.parse((await once(lines, 'line'))[0])
  lines.on('line', (line) => {
    mails.push(JSON.parse(line))
    for (const look of waiting) look()
  })
  return {
    mails,
    serve: {
      args: ['--smtp', `smtp://porch@${address}`],
      env: { SSL_CERT_FILE: ca, PORCHLIGHT_CONTROL_SMTP_PASSWORD: 'light' },
    },
    // next waits for a mail to an address whose subject matches, and takes it.
    next(to, subject) {
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`no mail like ${subject} came to ${to}, but ${JSON.stringify(mails.map((m) => [m.to, m.subject]))}`))
        }, 60_000)
        const look = () => {
          const i = mails.findIndex((m) => m.to === to && subject.test(m.subject))
          if (i < 0) return
          clearTimeout(late)
          waiting.delete(look)
          resolve(mails.splice(i, 1)[0])
        }
        waiting.add(look)
        look()
      })
    },
  }
}

// links are the addresses in a mail's text, and in its HTML.
export function links(mail) {
  return {
    text: mail.text.match(/https:\/\/[^\s<>"]+/g) ?? [],
    html: [...mail.html.matchAll(/href="([^"]+)"/g)].map((m) => m[1].replaceAll('&amp;', '&')),
  }
}
