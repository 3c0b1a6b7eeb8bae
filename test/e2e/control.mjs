// A control plane under test: porchlight-control serving on a free port with a
// data directory of its own, and the computers that speak to it.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import https from 'node:https'
import tls from 'node:tls'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { freePort, programs, startProcess } from './porchlight.mjs'

const run = promisify(execFile)
const program = `${programs}/porchlight-control`

// startControl resolves once the control plane answers. All of it ends with t.
// args are further flags of serve, env what its environment has besides ours. A
// browser finds hosts of another domain than localhost by --host-resolver-rules;
// a computer finds none, so that auth has to be under localhost for it.
export async function startControl(t, { args = [], env = {}, domain = 'localhost', auth = `control.${domain}` } = {}) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'porchlight-control-'))
  t.after(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }))
  const data = path.join(dir, 'data')
  const port = await freePort()
  const authUrl = `https://${auth}:${port}`
  const lookup = (_, o, done) => (o.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4))
  let ca
  // request speaks HTTPS without being a browser: no cookies, no redirects.
  const request = (url, { body, ...options } = {}) =>
    new Promise((resolve, reject) => {
      https
        .request(new URL(url, authUrl), { ...options, ca, lookup, agent: false }, (res) => {
          let text = ''
          res.on('data', (chunk) => (text += chunk))
          res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: text }))
        })
        .on('error', reject)
        .end(body)
    })
  await startProcess(t, program, ['serve', '--data', data, '--domain', domain, '--auth-host', auth, '--listen', `127.0.0.1:${port}`, '--tunnel-address', `127.0.0.1:${port}`, ...args], { env: { ...process.env, ...env } }, async () => {
    try {
      ca = await readFile(path.join(data, 'ca', 'root.pem'))
      return (await request('/healthz')).status === 200
    } catch {
      return false
    }
  })

  const read = new Set() // links of the mails that were returned
  const control = {
    dir,
    data,
    authUrl,
    request,
    // cli runs an administration command and returns what it prints.
    async cli(...args) {
      return (await run(program, [...args, '--data', data])).stdout.trim()
    },
    async json(...args) {
      return JSON.parse(await control.cli(...args, '--json'))
    },
    // call speaks to the interface of agents, with a device credential or none.
    async call(method, pathname, body, credential) {
      const answer = await request(pathname, {
        method,
        headers: { 'Porchlight-Protocol': '1', 'Content-Type': 'application/json', ...(credential && { Authorization: 'Bearer ' + credential }) },
        body: body && JSON.stringify(body),
      })
      return { status: answer.status, body: answer.body ? JSON.parse(answer.body) : null }
    },
    // tunnel connects a computer as its agent does; told is the first snapshot.
    async tunnel(credential) {
      const socket = tls.connect({ host: '127.0.0.1', port, servername: auth, ca, ALPNProtocols: ['porchlight-tunnel/3'] })
      const send = (frame) => {
        const body = Buffer.from(JSON.stringify(frame))
        const size = Buffer.alloc(4)
        size.writeUInt32BE(body.length)
        socket.write(Buffer.concat([size, body]))
      }
      send({ type: 'hello', credential, instance: 'a test' })
      let unread = Buffer.alloc(0)
      const parts = []
      const told = await new Promise((resolve, reject) => {
        socket.on('error', reject).on('close', () => reject(new Error('the relay closed the tunnel')))
        socket.on('data', (data) => {
          unread = Buffer.concat([unread, data])
          while (unread.length >= 4 && unread.length >= 4 + unread.readUInt32BE()) {
            const end = 4 + unread.readUInt32BE()
            const frame = JSON.parse(unread.subarray(4, end))
            unread = unread.subarray(end)
            if (frame.type === 'welcome') send({ type: 'sync' })
            if (frame.type === 'refused') reject(new Error(frame.message))
            if (frame.type !== 'synced') continue
            parts.push(Buffer.from(frame.part, 'base64'))
            if (!frame.more) resolve(JSON.parse(Buffer.concat(parts)))
          }
        })
      })
      return { told, close: () => socket.destroy() }
    },
    // mail waits for a mail to an address whose subject matches and that was not
    // returned before, the newest first.
    async mail(to, subject) {
      const deadline = Date.now() + 60_000
      while (Date.now() < deadline) {
        const found = (await control.json('outbox')).find((m) => m.to === to && subject.test(m.subject) && !read.has(m.links[0]))
        if (found) {
          read.add(found.links[0])
          return found
        }
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      throw new Error(`no mail came to ${to}`)
    },
  }
  return control
}
