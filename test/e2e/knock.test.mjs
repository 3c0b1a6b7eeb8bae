// Somebody who may not open an app asks its owner, on a page as small as a phone's: a
// member is let in for today, and the page goes on by itself; somebody nobody invited
// accepts by one click, without a mail.
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { invite, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

// pictures are kept where PICTURES says, to be looked at.
const pictures = process.env.PICTURES && fileURLToPath(new URL(process.env.PICTURES + '/', 'file:///'))
const phone = { width: 390, height: 844 }

test('who knocks is let in by one answer, and the page goes on by itself', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.end(`<h1>${req.headers['x-service-app']}</h1><p>${req.headers['x-service-email']}</p>`)
  })
  await porchlight.publish('notes', 'Notes', port)
  const photos = (await porchlight.publish('photos', 'Secret Photos', port)) + '/'
  const browser = await startBrowser(t, porchlight)

  // knocks waits for so many people to ask.
  async function knocks(n) {
    for (const deadline = Date.now() + 60_000; ; ) {
      const all = await porchlight.json('knocks')
      if (all.length === n) return all
      assert.ok(Date.now() < deadline, `${all.length} ask, not ${n}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  // stranger is the page of somebody with an address here whom this computer does not
  // know any more, signed in before the app.
  async function stranger(email) {
    await porchlight.cli('people', 'invite', email, '--app', 'Notes')
    await porchlight.mailedLink(email)
    await porchlight.cli('people', 'remove', email)
    const page = await (await browser.newContext({ viewport: phone })).newPage()
    await page.goto(photos)
    await page.fill('input[name=email]', email)
    await page.click('button.primary')
    await page.goto((await porchlight.mailedLink(email)).links[0])
    await page.click('button.primary')
    await page.waitForURL('**/visit?**')
    return page
  }
  // fits looks at the page of a phone, and tells nothing of the app or its owner.
  async function fits(page, name, heading) {
    await page.waitForLoadState()
    assert.match(await page.textContent('h1'), heading)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), phone.width)
    const shown = await page.textContent('body')
    assert.ok(!/Secret|owner@|40\d|50\d/.test(shown.replace(/:\d+/g, '')), shown)
    if (!pictures) return
    await mkdir(pictures, { recursive: true })
    for (const colorScheme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme })
      await page.screenshot({ path: `${pictures}${name}-phone-${colorScheme}.png` })
    }
  }

  await t.test('a member, for today', async () => {
    const page = await invite(porchlight, browser, 'bob@example.com', 'Notes')
    await page.setViewportSize(phone)
    const refused = await page.goto(photos)
    assert.equal(refused.status(), 403)
    await fits(page, 'knock-ask', /This isn’t shared with you/)
    await page.click('text=let you in')
    await page.waitForURL('**/knock?**')
    await fits(page, 'knock-waiting', /has been asked/)
    const [knock] = await knocks(1)
    assert.deepEqual([knock.email, knock.app, knock.known], ['bob@example.com', 'Secret Photos', true])
    const said = await porchlight.cli('knocks', 'answer', knock.id, '--today')
    assert.match(said, /bob@example\.com can open Secret Photos now, until the end of today/)
    await page.waitForURL(photos, { timeout: 60_000 }) // by itself
    assert.equal(await page.textContent('p'), 'bob@example.com')
    const { members } = await porchlight.json('people')
    const bob = members.find((p) => p.email === 'bob@example.com')
    assert.ok(Date.parse(bob.until['Secret Photos']) > Date.now())
    assert.deepEqual(await porchlight.json('knocks'), [])
  })

  await t.test('a stranger, once the owner listens to strangers, by one click', async () => {
    const page = await stranger('carla@example.org')
    assert.equal(await page.locator('text=let you in').count(), 0, 'off at first')
    await porchlight.cli('settings', '--strangers-knock')
    for (const deadline = Date.now() + 60_000; !(await page.locator('text=let you in').count()); await page.reload()) assert.ok(Date.now() < deadline, 'the setting never arrived')
    await page.click('text=let you in')
    await page.waitForURL('**/knock?**')
    const [knock] = await knocks(1)
    assert.equal(knock.known, false)
    const mails = (await porchlight.json('outbox')).length
    assert.match(await porchlight.cli('knocks', 'answer', knock.id, '--always'), /after one click on the page they wait on/)
    await page.locator('h1', { hasText: 'lets you in' }).waitFor({ timeout: 60_000 }) // by itself
    await fits(page, 'knock-invited', /lets you in/)
    await page.click('button.primary')
    await page.waitForURL(photos)
    assert.equal(await page.textContent('p'), 'carla@example.org')
    assert.equal((await porchlight.json('outbox')).length, mails, 'no mail was needed')
  })

  await t.test('from the agent’s own pages: the launcher with nothing to show, and an app that was open', async () => {
    const page = await invite(porchlight, browser, 'eve@example.com', 'Notes')
    await page.setViewportSize(phone)
    await porchlight.cli('people', 'withdraw', 'eve@example.com', '--app', 'Notes')
    const { url: root } = await porchlight.json('account')
    for (const [from, name, app] of [[root + '/', 'launcher-empty-knock', ''], [page.url(), 'knock-agent', 'Notes']]) {
      await page.goto(from)
      await page.locator('text=let you in').waitFor()
      if (app) await fits(page, name, /This isn’t shared with you/)
      await page.click('text=let you in') // to the control plane's page
      await page.waitForURL('**/knock?**')
      await page.click('text=let you in')
      await page.locator('h1', { hasText: 'has been asked' }).waitFor()
      const [knock] = await knocks(1)
      assert.deepEqual([knock.email, knock.app, knock.known], ['eve@example.com', app, true])
      await porchlight.cli('knocks', 'answer', knock.id, '--no')
      await knocks(0)
    }
  })

  await t.test('a no looks like no answer', async () => {
    const page = await stranger('dora@example.org')
    await page.click('text=let you in')
    await page.waitForURL('**/knock?**')
    const before = await page.textContent('main')
    await porchlight.cli('knocks', 'answer', (await knocks(1))[0].id, '--never')
    await page.reload().catch(() => page.waitForLoadState()) // it was loading itself anew
    assert.equal(await page.textContent('main'), before)
    assert.deepEqual(await porchlight.json('knocks'), [])
  })
})
