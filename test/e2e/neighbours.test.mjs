// What one app's pages leave in a visitor's browser for others: cookies for the
// domain they share, and what stays on an address that another app gets.
import assert from 'node:assert/strict'
import test from 'node:test'
import { press, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const page = (title, script = '') => (req, res) => {
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.end(`<!doctype html><title>${title}</title><h1>${title}</h1><script>${script}</script>`)
}

test('thirty large cookies of a neighbour keep nobody out', async (t) => {
  const porchlight = await startPorchlight(t)
  const { host } = await porchlight.json('account')
  const domain = host.replace(/:\d+$/, '')
  const fill = `for (let i = 0; i < 30; i++) document.cookie = 'c' + i + '=' + 'x'.repeat(4000) + '; Domain=${domain}; Path=/; Secure'
    document.title = 'Filled'`
  await porchlight.publish('games', 'Games', await startServer(t, page('Games', fill)))
  const notes = await porchlight.publish('notes', 'Notes', await startServer(t, page('Notes')))
  const browser = await startBrowser(t, porchlight)
  const context = await browser.newContext()
  const tab = await context.newPage()
  const protocols = new Set()
  tab.on('response', async (r) => protocols.add(await r.request().allHeaders().then((h) => (':authority' in h ? 'h2' : 'h1'), () => 'h1')))

  await tab.goto(await porchlight.cli('open', 'notes', '--print'))
  assert.equal(await tab.textContent('h1'), 'Notes')
  await tab.goto(await porchlight.cli('open', 'games', '--print'))
  await tab.waitForFunction(() => document.title === 'Filled')
  const large = async () => (await context.cookies(notes + '/')).filter((c) => /^c\d+$/.test(c.name)).length
  assert.equal(await large(), 30, 'the browser would send them to the other app')

  const refused = await tab.goto(notes + '/some/page')
  assert.equal(refused.status(), 431)
  assert.equal(await tab.textContent('h1'), 'There were too many cookies')
  assert.match(await tab.textContent('main'), /They are deleted now\. Reload the page/)
  assert.equal(await large(), 0)
  await tab.click('a.btn')
  await tab.waitForURL((url) => url.origin !== new URL(notes).origin)
  assert.ok(await tab.isVisible('input[name=email]'), 'the visit after it leads to signing in')
  await tab.goto(await porchlight.cli('open', 'notes', '--print'))
  assert.equal(await tab.textContent('h1'), 'Notes')
  assert.deepEqual([...protocols], ['h2'])
})

// Workers of a former app: one that asks the network and changes what comes, and
// one that never asks.
const workers = {
  'that passes requests on': `respondWith(fetch(e.request).then(async (r) => r.ok ? new Response((await r.text()).replace('<h1>', '<h1>Worker: '), { headers: { 'Content-Type': 'text/html' } }) : r))`,
  'that answers from memory': `respondWith(new Response('<h1>Worker: from memory</h1>', { headers: { 'Content-Type': 'text/html' } }))`,
}

for (const [what, answer] of Object.entries(workers)) {
  test(`an app that gets an address is not answered for by the former one's worker ${what}`, async (t) => {
    const porchlight = await startPorchlight(t)
    const old = await startServer(t, (req, res) => {
      if (req.url !== '/sw.js') return page('Old app', `navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready).then(() => { localStorage.kept = 'old'; document.title = 'Ready' })`)(req, res)
      res.setHeader('Content-Type', 'text/javascript')
      res.end(`self.addEventListener('install', () => self.skipWaiting())
        self.addEventListener('activate', (e) => e.waitUntil(clients.claim()))
        self.addEventListener('fetch', (e) => { if (e.request.mode === 'navigate' && new URL(e.request.url).pathname === '/') e.${answer} })`)
    })
    const url = await porchlight.publish('notes', 'Notes', old)
    const browser = await startBrowser(t, porchlight)
    const tab = await browser.newPage()
    await tab.goto(await porchlight.cli('open', 'notes', '--print'))
    await tab.goto(url + '/ready')
    await tab.waitForFunction(() => document.title === 'Ready')
    await tab.goto(url + '/')
    assert.match(await tab.textContent('h1'), /^Worker: /)

    await porchlight.cli('revoke', 'notes')
    assert.equal(await porchlight.publish('notes', 'New notes', await startServer(t, page('New app'))), url)

    // The first page still comes by way of the worker. One that asks is told that
    // nobody is signed in, and is gone with that; for one that never asks the
    // browser looks for a newer one, and is told then. On a slow machine it has
    // looked before.
    const asks = what.startsWith('that passes')
    const deadline = Date.now() + 60_000
    await tab.goto(url + '/')
    if (new URL(tab.url()).origin === url) assert.match(await tab.textContent('body'), asks ? /Sign in first/ : /from memory/)
    await tab.goto(url + '/')
    while (!asks && new URL(tab.url()).origin === url) {
      assert.ok(Date.now() < deadline, 'the worker goes on')
      await tab.waitForTimeout(500)
      await tab.goto(url + '/')
    }
    assert.ok(await tab.isVisible('input[name=email]'), 'the new app asks who it is')
    await tab.goto(await porchlight.cli('open', 'notes', '--print'))
    assert.equal(await tab.textContent('h1'), 'New app')
    const left = await tab.evaluate(async () => ({ workers: (await navigator.serviceWorker.getRegistrations()).length, kept: localStorage.kept ?? null }))
    assert.deepEqual(left, { workers: 0, kept: null })

    // What the new app keeps stays: through an update, signing out and lost cookies.
    await tab.evaluate(() => (localStorage.mine = 'new'))
    await porchlight.post('/publish', { name: 'notes', label: 'Newer notes', localPort: await startServer(t, page('Newer app')) })
    await tab.goto(url + '/')
    assert.equal(await tab.textContent('h1'), 'Newer app')
    await tab.goto(url + '/.porchlight/sign-out')
    await press(tab, 'button.primary')
    await tab.goto(await porchlight.cli('open', 'notes', '--print'))
    await tab.context().clearCookies()
    await tab.goto(url + '/')
    await tab.goto(await porchlight.cli('open', 'notes', '--print'))
    assert.equal(await tab.evaluate(() => localStorage.mine), 'new')
  })
}
