// The program under test and what surrounds it: an agent in local mode on free
// ports and a data directory of its own, and a browser that trusts its
// certificates the way a person's browser does, through its NSS store.
import { execFile, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import os from 'node:os'
import path from 'node:path'
import readline from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'

const run = promisify(execFile)
// PORCHLIGHT_PROGRAMS is the directory of the programs under test.
const built = fileURLToPath(new URL('../../bin', import.meta.url))
export const programs = process.env.PORCHLIGHT_PROGRAMS ?? built
const program = `${programs}/porchlight`

// startPorchlight resolves once the agent serves. t is the test's context; all
// of it ends with the test. measured takes the program that has no race detector,
// which would take several times the memory. at is where it serves HTTPS.
export async function startPorchlight(t, { measured = false, at = '127.0.0.1:0' } = {}) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'porchlight-e2e-'))
  const data = path.join(dir, 'data')
  const env = { ...process.env, XDG_CONFIG_HOME: path.join(dir, 'config'), PORCHLIGHT_DATA: data, PORCHLIGHT_API: '' }
  let agent, ended
  const start = async () => {
    agent = spawn(measured ? `${built}/porchlight` : program, ['agent', '--local', '--api', '127.0.0.1:0', '--https', at], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    ended = once(agent, 'exit')
    const [first] = await Promise.race([
      once(readline.createInterface({ input: agent.stdout }), 'line'),
      ended.then(([code]) => Promise.reject(new Error(`the agent ended with ${code}`))),
    ])
    if (!first.includes('Porchlight is on')) throw new Error('the agent said: ' + first)
  }
  const stop = async () => {
    agent.kill('SIGTERM')
    await ended
  }
  t.after(async () => {
    await stop()
    await rm(dir, { recursive: true, force: true, maxRetries: 5 })
  })
  await start()

  const read = new Set() // links of the mails that were returned
  const porchlight = {
    dir,
    data,
    agent,
    stop,
    start, // again, where at says: its API is at another port then
    ...runProgram(program, env),
    // post and get speak to the loopback API as an app does.
    async post(pathname, body) {
      return answer(
        await fetch(`http://${porchlight.api}${pathname}`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        }),
      )
    },
    async get(pathname) {
      return answer(await fetch(`http://${porchlight.api}${pathname}`))
    },
    // publish asks for an address and has the owner approve it.
    async publish(name, label, localPort) {
      const asked = await porchlight.post('/publish', { name, label, localPort })
      if (asked.status !== 202) throw new Error(`publish answered ${asked.status}`)
      await porchlight.cli('approve', name)
      return (await porchlight.get('/publish/' + name)).body.url
    },
    // mailedLink waits for a mail to the address that was not returned before, the
    // newest first.
    async mailedLink(email) {
      const deadline = Date.now() + 60_000
      while (Date.now() < deadline) {
        const mail = (await porchlight.json('outbox')).find((m) => m.to === email && m.links.length && !read.has(m.links[0]))
        if (mail) {
          read.add(mail.links[0])
          return mail
        }
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      throw new Error('no mail came to ' + email)
    },
  }
  const ca = await readFile(path.join(data, 'ca', 'root.pem'))
  // request is a client that is no browser: no cookies, no redirects followed.
  porchlight.request = (url, options) =>
    new Promise((resolve, reject) => {
      const lookup = (_, o, done) => (o.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4))
      https
        .request(url, { ...options, ca, lookup, agent: false }, (res) => {
          let body = ''
          res.on('data', (chunk) => (body += chunk))
          res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body }))
        })
        .on('error', reject)
        .end()
    })
  porchlight.api = JSON.parse(await readFile(path.join(data, 'agent.json'), 'utf8')).api
  return porchlight
}

// runProgram is a command line, of which cli runs a command and returns what it
// prints.
export function runProgram(program, env) {
  const cli = async (...args) => (await run(program, args, { env })).stdout.trim()
  return { cli, json: async (...args) => JSON.parse(await cli(...args, '--json')) }
}

async function answer(response) {
  return { status: response.status, body: await response.json() }
}

// startBrowser opens Chromium with a fresh profile that trusts porchlight's root
// certificate, or those in the files roots; args are more arguments of it. has is a device's
// certificate, as file and code, which it shows at origins without asking: no other Chromium
// of this computer hears of that.
export async function startBrowser(t, porchlight, args = [], roots = [path.join(porchlight.data, 'ca', 'root.pem')], has) {
  const home = path.join(porchlight.dir, 'home-' + Math.random().toString(16).slice(2))
  const nss = path.join(home, '.pki', 'nssdb')
  await mkdir(nss, { recursive: true })
  await run('certutil', ['-N', '--empty-password', '-d', 'sql:' + nss])
  for (const [i, root] of roots.entries()) await run('certutil', ['-A', '-d', 'sql:' + nss, '-n', 'porchlight' + i, '-t', 'C,,', '-i', root])
  let executablePath = '/usr/bin/chromium'
  if (has) {
    await run('pk12util', ['-i', has.file, '-W', has.code, '-d', 'sql:' + nss, '-K', ''])
    const managed = path.join(home, 'policies', 'managed')
    await mkdir(managed, { recursive: true })
    const shown = has.origins.map((pattern) => JSON.stringify({ pattern, filter: {} }))
    await writeFile(path.join(managed, 'shown.json'), JSON.stringify({ AutoSelectCertificateForUrls: shown }))
    executablePath = path.join(home, 'chromium')
    const inside = 'mount --bind "$0" /etc/chromium/policies && exec /usr/bin/chromium "$@"'
    await writeFile(executablePath, `#!/bin/sh\nexec unshare --map-root-user --mount sh -c '${inside}' '${path.dirname(managed)}' "$@"\n`, { mode: 0o700 })
  }
  const browser = await chromium.launch({
    executablePath,
    env: { ...process.env, HOME: home, XDG_CONFIG_HOME: path.join(home, '.config') },
    args: [
      ...(process.getuid() === 0 || has ? ['--no-sandbox'] : []),
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  })
  t.after(() => browser.close())
  return browser
}

// invite has the owner give somebody apps, by label, and returns a page of that
// person's own, who has clicked the invitation and stands at the first app.
export async function invite(porchlight, browser, email, ...labels) {
  await porchlight.cli('people', 'invite', email, ...labels.flatMap((label) => ['--app', label]))
  const mail = await porchlight.mailedLink(email)
  const page = await (await browser.newContext()).newPage()
  await page.goto(mail.links[0])
  await press(page, 'button.primary')
  return page
}

// press clicks what leads to another page, and resolves once that one is there. On a busy
// machine a click alone may resolve before, and what is read then is the page before.
export async function press(page, what) {
  const click = () => (typeof what === 'string' ? page.click(what) : what.click())
  await Promise.all([page.waitForEvent('framenavigated', (frame) => frame === page.mainFrame()), click()])
  await page.waitForLoadState()
}

// startServer runs a node:http handler on a free port of 127.0.0.1.
export async function startServer(t, handler) {
  const server = http.createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return server.address().port
}

// startProcess runs a program until the test ends and resolves once ready
// (a function) says so.
export async function startProcess(t, command, args, options, ready) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const deadline = Date.now() + 60_000
  while (!(await ready())) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${command} did not come up:\n${output}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return child
}

// freePort is one that nothing listens on and that is given to nobody else: the
// system takes those it chooses itself, for connections, too, from above these, and
// other tests, in Go as well, do not get the UDP port of its number.
export async function freePort() {
  for (;;) {
    const port = 12000 + Math.floor(Math.random() * 20000)
    const ours = dgram.createSocket('udp4').unref()
    ours.bind({ port, address: '127.0.0.1', exclusive: true })
    if (!(await once(ours, 'listening').then(() => true, () => false))) continue
    const server = http.createServer().listen(port, '127.0.0.1')
    const taken = await once(server, 'listening').then(() => false, () => true)
    if (taken) {
      ours.close()
      continue
    }
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}

// answers says whether something speaks HTTP on a local port.
export async function answers(port) {
  try {
    await fetch(`http://127.0.0.1:${port}/`, { redirect: 'manual' })
    return true
  } catch {
    return false
  }
}
