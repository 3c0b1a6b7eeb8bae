// A computer that is off: what a browser shows in place of its launcher, and nothing
// elsewhere.
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePort, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const pictures = process.env.PICTURES && fileURLToPath(new URL(process.env.PICTURES + '/', 'file:///'))

test('while the computer is off its launcher says so', async (t) => {
  // Nobody else gets the port while the computer is off.
  const porchlight = await startPorchlight(t, { at: '127.0.0.1:' + (await freePort()) })
  const port = await startServer(t, (_, res) => res.setHeader('Content-Type', 'text/html').end('<h1>Notes</h1>'))
  await porchlight.publish('notes', 'Notes', port)
  const { url: root, host } = await porchlight.json('account')
  const app = `https://notes.${host}/`
  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()

  await page.goto(await porchlight.cli('open', 'notes', '--print'))
  await page.goto(await porchlight.cli('open', '--print'))
  assert.equal(await page.textContent('h1'), host)
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true))
  const registrations = () => page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).map((one) => [one.active?.scriptURL, one.scope]))
  assert.deepEqual(await registrations(), [[root + '/worker.js', root + '/']])
  await page.goto(root) // by the worker
  assert.equal(await page.textContent('h1'), host)
  assert.equal(await page.evaluate(() => navigator.serviceWorker.controller?.scriptURL), root + '/worker.js')
  assert.deepEqual(await page.evaluate(() => caches.keys()), [], 'it keeps nothing')

  await porchlight.stop()
  await t.test('a page without names is there', async () => {
    const answer = await page.goto(root)
    assert.equal(answer.status(), 503)
    assert.equal(await page.textContent('h1'), 'This computer is off')
    assert.ok(!(await page.content()).includes(host.split('.')[0] + '.'), 'it names nobody')
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await page.reload()
      await page.setViewportSize({ width: 390, height: 700 })
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390)
      if (pictures) {
        await mkdir(pictures, { recursive: true })
        await page.screenshot({ path: `${pictures}launcher-off-${colorScheme}.png` })
      }
    }
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('main')).maxWidth), '416px', 'its style is its own')
    assert.match(answer.headers()['content-security-policy'], /^default-src 'none'; style-src 'sha256-[^']*'; base-uri 'none'; frame-ancestors 'none'$/)
  })
  await t.test('an app’s address is the browser’s to explain', async () => {
    await assert.rejects(page.goto(app), /ERR_/)
    await assert.rejects(page.goto(root + '/.porchlight/sign-out'), /ERR_/)
    await page.context().setOffline(true)
    await assert.rejects(page.goto(root), /ERR_INTERNET_DISCONNECTED/, 'of a browser without a network nothing is said about the computer')
    await page.context().setOffline(false)
  })
  await t.test('once it is on again there is the launcher', async () => {
    await page.goto(root)
    await porchlight.start()
    await page.click('text=Try again')
    await page.waitForFunction((host) => document.querySelector('h1')?.textContent === host, host)
  })
  await t.test('signing in and out goes past it', async () => {
    await page.click('text=Sign out')
    await page.waitForURL((url) => url.pathname === '/.porchlight/sign-out')
    await page.goto(root)
    assert.equal(await page.evaluate('location.pathname'), '/signin')
    await page.goto(await porchlight.cli('open', '--print'))
    assert.equal(await page.textContent('h1'), host)
  })
  await t.test('where the owner does not want it, browsers forget it', async () => {
    await porchlight.cli('settings', '--tell-off=false')
    await page.goto(root)
    while ((await registrations()).length) await new Promise((resolve) => setTimeout(resolve, 50))
    await porchlight.stop()
    await assert.rejects(page.goto(root), /ERR_/)
  })
})
