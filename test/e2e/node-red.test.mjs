// Node-RED as a published app: a real editor, whose WebSocket has to work.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { answers, freePort, startBrowser, startPorchlight, startProcess } from './porchlight.mjs'

const nodeRed = fileURLToPath(new URL('./node_modules/node-red/red.js', import.meta.url))

test('the Node-RED editor works at its address, WebSocket included', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await freePort()
  await startProcess(
    t,
    process.execPath,
    [nodeRed, '--userDir', path.join(porchlight.dir, 'node-red'), '--port', String(port), '-D', 'uiHost=127.0.0.1', '-D', 'telemetry.enabled=false'],
    {},
    () => answers(port),
  )
  const url = await porchlight.publish('flows', 'Node-RED', port)
  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()

  const received = new Promise((resolve) => {
    page.on('websocket', (socket) => {
      if (new URL(socket.url()).host === new URL(url).host) socket.on('framereceived', (frame) => resolve([socket.url(), frame.payload]))
    })
  })
  await page.goto(await porchlight.cli('open', 'flows', '--print'))
  await page.waitForSelector('#red-ui-workspace', { timeout: 60_000 })
  await page.waitForSelector('.red-ui-palette-node', { timeout: 60_000 })

  const [address, payload] = await received
  assert.ok(address.startsWith(url.replace('https:', 'wss:') + '/comms'), address)
  assert.ok(payload.length > 0)
})
