// Certificates of devices: made by a member in Chromium, fetched by a link that works once,
// used by curl and by a Chromium that has it, and of no use to pages elsewhere.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'
import { invite, press, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const run = promisify(execFile)
const bob = 'bob@example.com'

test('a device’s certificate is made by a member, fetched once, and opens what was chosen', async (t) => {
  const porchlight = await startPorchlight(t)
  const asked = []
  const port = await startServer(t, (req, res) => {
    if (req.url !== '/favicon.ico') asked.push(`${req.method} ${req.url}`)
    res.setHeader('Content-Type', 'text/html')
    res.end(`<title>of ${req.headers['x-service-email']}</title>`)
  })
  const notes = await porchlight.publish('notes', 'Notes', port)
  const photos = await porchlight.publish('photos', 'Photos', port)
  const { url: root } = await porchlight.json('account')
  const browser = await startBrowser(t, porchlight)
  const page = await invite(porchlight, browser, bob, 'Notes')
  const at = { file: path.join(porchlight.dir, 'phone.p12'), pem: path.join(porchlight.dir, 'phone.pem') }
  let code, link

  await t.test('the member makes one, of what they can open', async () => {
    await page.goto(root + '/.porchlight/devices')
    assert.equal(await page.locator('input[name=app]').count(), 1)
    assert.ok(await page.locator('input[name=app]').isChecked())
    await page.fill('input[name=name]', 'My phone')
    await press(page, 'button.primary')
    ;[code, link] = await page.locator('code.whole').allTextContents()
    assert.match(code, /^(\w{5}-){3}\w{5}$/)
    assert.ok(link.startsWith(root + '/.porchlight/device#'))
  })

  await t.test('its link works once, where nobody is signed in', async () => {
    const device = await (await browser.newContext()).newPage()
    const sent = []
    device.on('request', (request) => sent.push(request.url()))
    await device.goto(link)
    await device.waitForFunction(() => !document.querySelector('form button').disabled)
    assert.equal(new URL(device.url()).hash, '', 'the secret does not stay in the address')
    const [download] = await Promise.all([device.waitForEvent('download'), device.click('button.primary')])
    assert.equal(download.suggestedFilename(), 'porchlight.p12')
    await download.saveAs(at.file)
    assert.ok(!sent.some((url) => url.includes(link.split('#')[1])), 'nor does any address have it')
    await device.goto('about:blank')
    await device.goto(link)
    await device.click('button.primary')
    await device.locator('h1', { hasText: 'This link is over' }).waitFor()
    await device.context().close()
  })

  await t.test('curl comes in by it, to no other app', async () => {
    await assert.rejects(run('openssl', ['pkcs12', '-in', at.file, '-passin', 'pass:wrong', '-nodes']))
    const { stdout } = await run('openssl', ['pkcs12', '-in', at.file, '-passin', 'pass:' + code, '-nodes'])
    await writeFile(at.pem, stdout, { mode: 0o600 })
    const curl = async (url, ...args) =>
      (await run('curl', ['-sS', '--cacert', path.join(porchlight.data, 'ca', 'root.pem'), '--cert', at.pem, '--connect-to', `::127.0.0.1:${new URL(notes).port}`, ...args, url])).stdout
    for (const flag of ['--http1.1', '--http2']) assert.equal(await curl(notes + '/', flag), `<title>of ${bob}</title>`)
    assert.match(await curl(photos + '/', '-i'), /^HTTP\/2 401/)
    assert.match(await curl(notes + '/', '-i', '-H', 'Host: ' + new URL(photos).host), /^HTTP\/2 421/)
    assert.match(await curl(notes + '/', '-i', '-H', 'Origin: https://evil.example'), /^HTTP\/2 403/)
  })

  await t.test('a Chromium that has it comes in without signing in, and pages elsewhere get nothing of it', async () => {
    const evil = await startServer(t, (_, res) => {
      res.setHeader('Content-Type', 'text/html')
      res.end(`<img src="${notes}/image"><iframe name=in></iframe><form method=post action="${notes}/form" target=in><button>Go</button></form>`)
    })
    const theirs = await startBrowser(t, porchlight, [], undefined, { file: at.file, code, origins: [notes, photos] })
    const device = await (await theirs.newContext()).newPage()
    asked.length = 0
    await device.goto(notes + '/page')
    assert.deepEqual([await device.title(), asked], [`of ${bob}`, ['GET /page']])
    await device.goto(photos + '/')
    assert.match(device.url(), /signin/, 'to sign in, where the certificate opens nothing')
    await device.goto(`http://127.0.0.1:${evil}/`, { waitUntil: 'networkidle' })
    await Promise.all([device.waitForResponse(notes + '/form'), device.click('button')])
    const answers = await device.context().newCDPSession(device) // which says what pages may not read
    const paths = new Map()
    const statuses = new Map()
    const both = new Promise((resolve) => {
      const complete = () => paths.size === 2 && [...paths.keys()].every((id) => statuses.has(id)) && resolve()
      answers.on('Network.requestWillBeSent', ({ requestId, request }) => {
        if (request.method === 'GET' && request.url.startsWith(notes)) paths.set(requestId, new URL(request.url).pathname)
        complete()
      })
      answers.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) => {
        statuses.set(requestId, statusCode)
        complete()
      })
    })
    await answers.send('Network.enable')
    const fetched = await device.evaluate(
      (notes) =>
        Promise.all([
          fetch(notes + '/fetch', { credentials: 'include' }).then((r) => r.status, () => 'refused'),
          fetch(notes + '/opaque', { mode: 'no-cors', credentials: 'include' }).then((r) => r.type, () => 'refused'),
          new Promise((done) => {
            const socket = new WebSocket(notes.replace('https', 'wss') + '/socket')
            socket.onopen = () => done('open')
            socket.onerror = () => done('refused')
          }),
        ]),
      notes,
    )
    assert.deepEqual([fetched[0], fetched[2], asked], ['refused', 'refused', ['GET /page']])
    await both
    const refusals = Object.fromEntries([...paths].map(([id, pathname]) => [pathname, statuses.get(id)]))
    assert.deepEqual(refusals, { '/fetch': 403, '/opaque': 403 }, 'the certificate came along, and was refused: 401 is for who has none')
  })

  await t.test('revoked by its member, it opens nothing', async () => {
    await page.goto(root + '/.porchlight/devices')
    await press(page, page.getByRole('button', { name: 'Revoke My phone' }))
    assert.equal(await page.getByText('My phone').count(), 0)
    const before = asked.length
    const { stdout } = await run('curl', ['-sSi', '--cacert', path.join(porchlight.data, 'ca', 'root.pem'), '--cert', at.pem, '--connect-to', `::127.0.0.1:${new URL(notes).port}`, notes + '/'])
    assert.match(stdout, /^HTTP\/2 401/)
    assert.equal(asked.length, before)
  })
})
