// The root host in Chromium: what each visitor may open, and signing out.
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import axe from 'axe-core'
import { invite, press, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

// pictures are kept where PICTURES says, to be looked at.
const pictures = process.env.PICTURES && fileURLToPath(new URL(process.env.PICTURES + '/', 'file:///'))

test('the launcher shows each visitor their apps', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.end(`<h1>${req.headers['x-service-app']}</h1><p>${req.headers['x-service-email']}</p>`)
  })
  const label = 'Photos of a summer by the sea, with a name that is far too long for a phone'
  await porchlight.publish('notes', 'Notes', port)
  await porchlight.publish('photos', label, port)
  const { url: root, host, email: owner } = await porchlight.json('account')
  const browser = await startBrowser(t, porchlight)

  const rows = (page) => page.locator('nav[aria-label=Apps] a b').allTextContents()
  const owners = await browser.newPage()
  await owners.goto(root)
  await owners.fill('input[name=email]', owner)
  await owners.click('button.primary')
  await owners.goto((await porchlight.mailedLink(owner)).links[0])
  await owners.click('button.primary')
  await owners.waitForURL(root + '/')
  assert.deepEqual(await rows(owners), ['Notes', label])

  const bobs = await invite(porchlight, browser, 'bob@example.com', 'Notes')
  await bobs.goto(root)
  assert.equal(bobs.url(), root + '/', 'one sign-in is enough')
  assert.deepEqual(await rows(bobs), ['Notes'])
  assert.ok(!(await bobs.content()).includes('photos'), 'nothing of what is not theirs')
  await bobs.goto(root.replace('://', '://portal.') + '/anything')
  assert.equal(bobs.url(), root + '/', 'portal. is the launcher too')

  await t.test('it fits a phone, in light and dark', async () => {
    for (const colorScheme of ['light', 'dark']) {
      for (const [name, viewport] of [['', { width: 1100, height: 760 }], ['-phone', { width: 320, height: 640 }]]) {
        await owners.emulateMedia({ colorScheme })
        await owners.setViewportSize(viewport)
        assert.equal(await owners.evaluate(() => document.documentElement.scrollWidth), viewport.width, name + colorScheme)
        const background = await owners.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).slice(0, 3).map(Number))
        assert.equal(Math.max(...background) > 128, colorScheme === 'light', `${colorScheme}: ${background}`)
        if (pictures) {
          await mkdir(pictures, { recursive: true })
          await owners.screenshot({ path: `${pictures}launcher${name}-${colorScheme}.png` })
        }
      }
    }
  })

  await t.test('a browser would install it, and it says who shares', async () => {
    const page = await bobs.context().newCDPSession(bobs)
    const { url, errors, data } = await page.send('Page.getAppManifest')
    assert.equal(url, root + '/.porchlight/manifest.webmanifest')
    assert.deepEqual(errors, [])
    assert.equal(JSON.parse(data).name, host.split(':')[0])
    const { installabilityErrors } = await page.send('Page.getInstallabilityErrors')
    // A test's window keeps nothing, and such a window installs nothing.
    assert.deepEqual(installabilityErrors.map((one) => one.errorId).filter((id) => id !== 'in-incognito'), [])
    assert.equal(await bobs.locator('main p b').first().textContent(), owner)
    for (const colorScheme of ['light', 'dark']) {
      await bobs.emulateMedia({ colorScheme })
      await bobs.reload() // what changes colour slowly is half way otherwise
      await bobs.evaluate(axe.source)
      const { violations } = await bobs.evaluate(() => axe.run(document))
      assert.deepEqual(violations.map((one) => one.id), [], colorScheme)
    }
  })

  await t.test('a row opens its app, and the app knows its visitor', async () => {
    await bobs.click('text=Notes')
    await bobs.waitForURL(`https://notes.${host}/`)
    assert.equal(await bobs.textContent('p'), 'bob@example.com')
    const me = await bobs.evaluate(async () => {
      const response = await fetch('/.porchlight/me')
      return { ...(await response.json()), cached: response.headers.get('cache-control') }
    })
    assert.match(me.accountId, /./)
    delete me.accountId
    assert.deepEqual(me, { email: 'bob@example.com', role: 'member', app: 'Notes', name: host.split('.')[0], cached: 'no-store' })
  })

  await t.test('with nothing shared it says so', async () => {
    await porchlight.cli('people', 'withdraw', 'bob@example.com', '--app', 'Notes')
    await bobs.goto(root)
    assert.deepEqual(await rows(bobs), [])
    assert.match(await bobs.textContent('main'), /Nothing here is shared with bob@example\.com right now/)
    if (pictures) await bobs.screenshot({ path: `${pictures}launcher-empty.png` })
  })

  await t.test('signing out ends the session here', async () => {
    await owners.setViewportSize({ width: 1100, height: 760 })
    await press(owners, 'header >> text=Sign out')
    assert.match(await owners.textContent('h1'), /signed out/)
    await press(owners, 'text=Sign out at')
    await press(owners, 'header >> text=Sign out')
    await owners.goto(root)
    assert.ok(!owners.url().startsWith(root + '/'), 'it has to sign in again')
  })

  await t.test('when a session is over fetch says so, and a form comes back to its page', async () => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(await porchlight.cli('open', 'notes', '--print'))
    const form = `https://notes.${host}/edit?id=7`
    await page.goto(form)
    await page.evaluate(() => fetch('/.porchlight/sign-out', { method: 'POST' }))
    const [status, authenticate, json] = await page.evaluate(async () => {
      const response = await fetch('/.porchlight/me')
      return [response.status, response.headers.get('www-authenticate'), await response.json()]
    })
    assert.equal(status, 401)
    assert.match(authenticate, /^Bearer resource_metadata="https:\/\/notes\.[^"]*\/\.porchlight\/me"$/)
    assert.match(json.error, /Sign in/)
    await page.evaluate(() => {
      const form = document.createElement('form')
      form.method = 'post'
      form.action = '/save'
      document.body.append(form)
      form.submit()
    })
    await page.fill('input[name=email]', owner)
    await press(page, 'button.primary')
    await page.goto((await porchlight.mailedLink(owner)).links[0])
    await page.click('button.primary')
    await page.waitForURL(form)
    assert.equal(await page.textContent('h1'), 'Notes')
  })
})
