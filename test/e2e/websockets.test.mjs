// WebSockets of npm's ws and of socket.io, from a page in Chromium, through
// relay and agent.
import assert from 'node:assert/strict'
import http from 'node:http'
import { once } from 'node:events'
import test from 'node:test'
import { Server as SocketIO } from 'socket.io'
import { WebSocketServer } from 'ws'
import { startBrowser, startPorchlight } from './porchlight.mjs'

async function listen(t, server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return server.address().port
}

const page404 = (req, res) => {
  res.setHeader('Content-Type', 'text/html')
  res.end('<title>app</title>')
}

test('ws: text and binary both ways, subprotocol, compression, close codes', async (t) => {
  const porchlight = await startPorchlight(t)
  const server = http.createServer(page404)
  const wss = new WebSocketServer({ server, perMessageDeflate: true, handleProtocols: (names) => [...names][0] })
  let upgrade
  wss.on('connection', (socket, req) => {
    upgrade = req
    socket.on('message', (data, binary) => {
      if (String(data) === 'close') socket.close(4001, 'as asked')
      else socket.send(data, { binary })
    })
  })
  t.after(() => wss.close())
  await porchlight.publish('chat', 'Chat', await listen(t, server))
  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()
  await page.goto(await porchlight.cli('open', 'chat', '--print'))

  const got = await page.evaluate(async () => {
    const socket = new WebSocket(`wss://${location.host}/ws`, ['chat.v2', 'chat.v1'])
    socket.binaryType = 'arraybuffer'
    const next = () => new Promise((resolve, reject) => {
      socket.onmessage = (event) => resolve(event.data)
      socket.onclose = (event) => reject(new Error(`closed ${event.code}`))
    })
    await new Promise((resolve, reject) => ((socket.onopen = resolve), (socket.onerror = () => reject(new Error('no socket')))))
    const sizes = []
    for (const size of [0, 1, 125, 126, 65535, 65536, 1 << 20]) {
      const text = 'ü'.repeat(size)
      socket.send(text)
      if ((await next()) !== text) throw new Error(`${size} characters changed`)
      const bytes = new Uint8Array(size).map((_, i) => i * 31)
      socket.send(bytes)
      const back = new Uint8Array(await next())
      if (back.length !== size || back.some((b, i) => b !== bytes[i])) throw new Error(`${size} bytes changed`)
      sizes.push(size)
    }
    const closed = new Promise((resolve) => (socket.onclose = (event) => resolve([event.code, event.reason, event.wasClean])))
    socket.send('close')
    return { protocol: socket.protocol, extensions: socket.extensions, sizes: sizes.length, closed: await closed }
  })
  assert.equal(got.protocol, 'chat.v2')
  assert.match(got.extensions, /permessage-deflate/)
  assert.equal(got.sizes, 7)
  assert.deepEqual(got.closed, [4001, 'as asked', true])
  assert.equal(upgrade.headers['x-service-role'], 'owner')
  assert.ok(!(upgrade.headers.cookie ?? '').includes('porchlight'))

  await t.test('a page of a sibling app gets no socket, unless the owner allows it', async () => {
    const other = http.createServer(page404)
    await porchlight.publish('other', 'Other', await listen(t, other))
    await page.goto(await porchlight.cli('open', 'other', '--print'))
    const host = 'chat.' + (await porchlight.json('account')).host
    const tries = () =>
      page.evaluate(
        (host) =>
          new Promise((resolve) => {
            const socket = new WebSocket(`wss://${host}/ws`)
            socket.onopen = () => resolve('open')
            socket.onerror = () => resolve('refused')
          }),
        host,
      )
    upgrade = undefined
    assert.equal(await tries(), 'refused')
    assert.equal(upgrade, undefined, 'the app was not asked')
    await porchlight.cli('options', 'chat', '--allow-cross-origin')
    assert.equal(await tries(), 'open')
  })
})

test('socket.io: polls first, upgrades to a WebSocket, and carries events with acknowledgements', async (t) => {
  const porchlight = await startPorchlight(t)
  const server = http.createServer(page404)
  const io = new SocketIO(server)
  const transports = new Set()
  io.on('connection', (socket) => {
    socket.conn.on('upgrade', (transport) => transports.add(transport.name))
    transports.add(socket.conn.transport.name)
    socket.on('add', (a, b, done) => done({ sum: a + b, who: socket.handshake.headers['x-service-email'] }))
    socket.on('blob', (data, done) => done(data))
  })
  t.after(() => io.close())
  await porchlight.publish('live', 'Live', await listen(t, server))
  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()
  await page.goto(await porchlight.cli('open', 'live', '--print'))
  await page.addScriptTag({ url: '/socket.io/socket.io.js' })
  const got = await page.evaluate(async () => {
    const socket = io()
    await new Promise((resolve, reject) => (socket.on('connect', resolve), socket.on('connect_error', reject)))
    if (socket.io.engine.transport.name !== 'websocket') await new Promise((resolve) => socket.io.engine.once('upgrade', resolve))
    const bytes = new Uint8Array(300_000).map((_, i) => i)
    const back = new Uint8Array(await socket.timeout(60_000).emitWithAck('blob', bytes))
    const answer = await socket.timeout(60_000).emitWithAck('add', 2, 3)
    return { ...answer, same: back.length === bytes.length && back.every((b, i) => b === bytes[i]), transport: socket.io.engine.transport.name }
  })
  const { email } = await porchlight.json('account')
  assert.deepEqual(got, { sum: 5, who: email, same: true, transport: 'websocket' })
  assert.deepEqual([...transports].sort(), ['polling', 'websocket'])
})
