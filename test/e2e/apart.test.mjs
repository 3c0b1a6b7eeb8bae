// What a page of another app, another computer or another site can do with an app
// its visitor is signed in to: open it in a tab, and nothing else.
import assert from 'node:assert/strict'
import test from 'node:test'
import { startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const html = (res, body) => {
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.end('<!doctype html><link rel=manifest href=/manifest.json>' + body)
}

// loads is a page that has the browser load from an app in every way it can.
const loads = (app) => `<title>loads</title>
  <script src="${app}/data.js"></script>
  <img src="${app}/delete?by=image">
  <iframe src="${app}/delete?by=frame"></iframe>
  <object data="${app}/delete?by=object"></object>
  <link rel=stylesheet href="${app}/delete?by=style">
  <script>fetch('${app}/delete?by=fetch', { credentials: 'include', mode: 'no-cors' }).catch(() => {})</script>
  <a id=here href="${app}/page">here</a> <a id=tab target=_blank href="${app}/page">tab</a>`

test('pages of others open an app in a tab and nothing else', async (t) => {
  const porchlight = await startPorchlight(t)
  const got = [] // what reached the app notes
  const notes = await startServer(t, (req, res) => {
    if (req.url !== '/favicon.ico') got.push(req.url) // that one a browser asks for when it likes
    const path = new URL(req.url, 'http://app').pathname
    if (path === '/data.js') {
      res.setHeader('Content-Type', 'text/javascript')
      return res.end("window.secret = 'read'")
    }
    if (path === '/worker.js') {
      res.setHeader('Content-Type', 'text/javascript')
      return res.end("addEventListener('fetch', (e) => e.respondWith(fetch(e.request)))")
    }
    if (path === '/file') {
      res.setHeader('Content-Disposition', 'attachment; filename=file.txt')
      return res.end('a file')
    }
    if (path === '/manifest.json') return res.end('{}')
    html(res, `<title>notes</title><h1>${path}</h1><script src=/data.js></script>${path === '/page' ? '<iframe src=/inner></iframe><a id=file href=/file>file</a>' : ''}`)
  })
  const photos = await startServer(t, (req, res) => html(res, loads(`https://notes.${host}`)))
  const { host } = await porchlight.json('account')
  await porchlight.publish('notes', 'Notes', notes)
  await porchlight.publish('photos', 'Photos', photos)
  const app = `https://notes.${host}`
  // Pages this test makes up count as ones from the Internet, which may not ask this computer.
  const browser = await startBrowser(t, porchlight, ['--disable-features=LocalNetworkAccessChecks'])
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(await porchlight.cli('open', 'photos', '--print'))
  await page.goto(await porchlight.cli('open', 'notes', '--print'))
  assert.equal(await page.title(), 'notes')
  assert.equal(await page.evaluate('window.secret'), 'read', 'its own page loads its script')

  const elsewhere = {
    'a sibling app': `https://photos.${host}/`,
    'an app of another computer of the domain': `https://photos.eve.${host}/`, // same-site, as all of a domain are
    'another site': 'https://chat.example/',
  }
  for (const [who, url] of Object.entries(elsewhere)) {
    await t.test(who, async () => {
      if (who !== 'a sibling app') await context.route(url, (route) => route.fulfill({ contentType: 'text/html', body: loads(app) }))
      const answers = []
      const listen = (res) => res.url().startsWith(app) && answers.push(`${res.status()} ${new URL(res.url()).search || res.url()}`)
      page.on('response', listen)
      got.length = 0
      await page.goto(url, { waitUntil: 'load' })
      await page.waitForLoadState('networkidle')
      page.off('response', listen)
      assert.equal(await page.evaluate('window.secret'), undefined, 'nothing is read')
      assert.deepEqual(got, [], 'nothing reaches the app')
      if (who !== 'another site') {
        // A cookie is sent along, which the agent does not count.
        for (const by of ['frame', 'object', 'fetch']) assert.ok(answers.includes(`403 ?by=${by}`), `${by}: ${answers}`)
      }

      const [tab] = await Promise.all([context.waitForEvent('page'), page.click('#tab')])
      await tab.waitForURL(app + '/page')
      assert.equal(await tab.textContent('h1'), '/page', 'a tab of its own')
      assert.equal(await tab.frameLocator('iframe').locator('h1').textContent(), '/inner', 'the app frames itself')
      const [download] = await Promise.all([tab.waitForEvent('download'), tab.click('#file')])
      assert.equal(download.suggestedFilename(), 'file.txt')
      await tab.close()
      await page.click('#here')
      await page.waitForURL(app + '/page')
      await page.goBack()
      await page.waitForURL(url)
      await page.goForward()
      await page.waitForURL(app + '/page')
      assert.equal(await page.textContent('h1'), '/page')
    })
  }

  await t.test('a sibling may, where the owner allows it', async () => {
    await porchlight.cli('options', 'notes', '--allow-cross-origin')
    got.length = 0
    await page.goto(elsewhere['a sibling app'])
    await page.waitForLoadState('networkidle')
    assert.equal(await page.evaluate('window.secret'), 'read')
    assert.ok(got.includes('/delete?by=frame'), String(got))
    got.length = 0
    await page.goto(elsewhere['an app of another computer of the domain'])
    await page.waitForLoadState('networkidle')
    assert.deepEqual(got, [], 'and nobody else')
    await porchlight.cli('options', 'notes', '--allow-cross-origin=false')
  })

  await t.test('an app with a service worker opens from elsewhere too', async () => {
    await page.goto(app + '/page')
    await page.evaluate(() => navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready))
    await page.goto(app + '/page')
    await page.waitForFunction(() => navigator.serviceWorker.controller)
    for (const url of Object.values(elsewhere)) {
      await page.goto(url, { waitUntil: 'networkidle' })
      // The worker hides from the agent that it is a frame; the browser does not show it.
      for (const frame of page.frames().slice(1)) assert.equal(await frame.locator('h1', { hasText: '/delete' }).count(), 0, url)
      await page.click('#here')
      await page.waitForURL(app + '/page')
      assert.equal(await page.textContent('h1'), '/page', url)
    }
  })
})
