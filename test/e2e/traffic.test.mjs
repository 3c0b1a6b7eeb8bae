// Much traffic through relay and agent, in a process of their own: what goes up
// and comes down is whole, and the agent's memory hardly grows. 256 MiB each
// way, and 2 GiB with PORCHLIGHT_SOAK=1.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import https from 'node:https'
import path from 'node:path'
import test from 'node:test'
import { startPorchlight, startServer } from './porchlight.mjs'

const MiB = 1 << 20
const size = (process.env.PORCHLIGHT_SOAK ? 2048 : 256) * MiB
const mayGrow = 32 * MiB

const block = Buffer.alloc(MiB).map((_, i) => (i * 2654435761) >>> 24)

// pour writes size bytes and resolves with their digest. No byte is where it was
// a block before, so that nothing can be repeated or left out unseen.
async function pour(stream, size) {
  const digest = createHash('sha1')
  for (let sent = 0; sent < size; ) {
    const from = (sent / MiB) % 251
    const piece = block.subarray(from, from + Math.min(MiB - from, size - sent))
    digest.update(piece)
    sent += piece.length
    if (!stream.write(piece)) await once(stream, 'drain')
  }
  stream.end()
  return digest.digest('hex')
}

async function drain(stream) {
  const digest = createHash('sha1')
  let size = 0
  for await (const piece of stream) {
    digest.update(piece)
    size += piece.length
  }
  return { digest: digest.digest('hex'), size }
}

// memory has the kernel keep the highest resident memory of a process from now
// on, and returns how far that is above what it is now.
async function memory(pid) {
  const read = async (field) => Number(new RegExp(field + ':\\s+(\\d+)').exec(await readFile(`/proc/${pid}/status`, 'utf8'))[1]) * 1024
  await writeFile(`/proc/${pid}/clear_refs`, '5') // proc(5): resets the peak
  const before = await read('VmRSS')
  return { grown: async () => (await read('VmHWM')) - before }
}

// signedIn returns request(path, options) of the owner at an app.
async function signedIn(porchlight, name) {
  const link = await porchlight.cli('open', name, '--print')
  const opened = await porchlight.request(link)
  assert.equal(opened.status, 303)
  const cookie = opened.headers['set-cookie'].map((line) => line.split(';')[0]).join('; ')
  const ca = await readFile(path.join(porchlight.data, 'ca', 'root.pem'))
  const lookup = (_, o, done) => (o.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4))
  return (pathname, { headers, ...options } = {}) =>
    https.request(new URL(pathname, link), { ca, lookup, agent: false, headers: { cookie, ...headers }, ...options })
}

test('a large upload and a large download pass whole, with little memory', async (t) => {
  const porchlight = await startPorchlight(t, { measured: true })
  let received, poured
  const port = await startServer(t, async (req, res) => {
    const wanted = Number(new URL(req.url, 'http://app').searchParams.get('size'))
    if (req.method === 'PUT') {
      received = await drain(req)
      res.end(received.digest)
      return
    }
    res.setHeader('Content-Length', wanted)
    poured = await pour(res, wanted)
  })
  await porchlight.publish('files', 'Files', port)
  const request = await signedIn(porchlight, 'files')
  const up = async (size) => {
    const req = request('/up', { method: 'PUT', headers: { 'Content-Length': size } })
    const answered = once(req, 'response')
    const digest = await pour(req, size)
    const [res] = await answered
    const body = Buffer.concat(await res.toArray()).toString()
    assert.equal(res.statusCode, 200)
    assert.equal(body, digest)
    assert.equal(received.size, size)
  }
  const down = async (size) => {
    const req = request('/down?size=' + size)
    req.end()
    const [res] = await once(req, 'response')
    assert.equal(res.statusCode, 200)
    assert.deepEqual(await drain(res), { digest: poured, size })
  }
  await up(8 * MiB)
  await down(8 * MiB)
  for (const [what, go] of [['upload', up], ['download', down]]) {
    const watch = await memory(porchlight.agent.pid)
    await go(size)
    const grown = await watch.grown()
    t.diagnostic(`${what} of ${size / MiB} MiB: the agent grew by ${(grown / MiB).toFixed(1)} MiB`)
    assert.ok(grown < mayGrow, `the agent grew by ${grown / MiB} MiB`)
  }
})

test('visitors who do not read cost little memory', async (t) => {
  const porchlight = await startPorchlight(t, { measured: true })
  const visitors = 50
  let stuck = 0
  let resolve
  const allStuck = new Promise((r) => (resolve = r))
  const port = await startServer(t, (req, res) => {
    if (req.url !== '/flood') return res.end('hello')
    const write = () => {
      while (res.write(block));
      // Full, all the way to a visitor who reads nothing; it drains no more.
      if (++stuck >= visitors) resolve()
    }
    res.on('drain', () => {
      stuck--
      write()
    })
    write()
  })
  await porchlight.publish('flood', 'Flood', port)
  const request = await signedIn(porchlight, 'flood')
  const hello = request('/')
  hello.end()
  await (await once(hello, 'response'))[0].toArray()

  const watch = await memory(porchlight.agent.pid)
  const open = []
  for (let i = 0; i < visitors; i++) {
    const req = request('/flood')
    req.on('error', () => {})
    req.end()
    const [res] = await once(req, 'response')
    res.on('error', () => {})
    res.pause()
    req.socket.pause()
    open.push(req)
  }
  await allStuck
  const grown = await watch.grown()
  t.diagnostic(`${visitors} visitors who do not read: the agent grew by ${(grown / MiB).toFixed(1)} MiB`)
  assert.ok(grown < mayGrow, `the agent grew by ${grown / MiB} MiB`)
  // Others are served meanwhile.
  const another = request('/')
  another.end()
  const [res] = await once(another, 'response')
  assert.equal(Buffer.concat(await res.toArray()).toString(), 'hello')
  for (const req of open) req.destroy()
})
