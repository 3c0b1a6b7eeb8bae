// An app that asks for a passkey, in Chromium with a virtual authenticator: an invited guest makes
// one on the way and is in, a session of a mail is led to show it, and what was open ends.
import assert from 'node:assert/strict'
import test from 'node:test'
import axe from 'axe-core'
import { startBrowser, startPorchlight, startServer } from './porchlight.mjs'

test('an app that opens by a passkey alone', async (t) => {
  const porchlight = await startPorchlight(t)
  const browser = await startBrowser(t, porchlight)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'text/html')
    if (req.url !== '/stream') return res.end('<!doctype html><title>Notes</title>here are the notes')
    res.write('begun')
  })
  const url = await porchlight.publish('notes', 'Notes', port)

  async function device() {
    const context = await browser.newContext({ viewport: { width: 375, height: 812 }, reducedMotion: 'reduce' })
    const page = await context.newPage()
    const devtools = await context.newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: false },
    })
    return { page, touched: (enabled) => devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }) }
  }

  async function look(page, name) {
    await page.waitForLoadState()
    await page.evaluate(axe.source)
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, name)
      const { violations } = await page.evaluate(() => axe.run())
      assert.deepEqual(violations.map((v) => `${name} ${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [])
    }
  }

  // In by the invitation, before the owner asks for a passkey.
  await porchlight.cli('people', 'invite', 'ben@example.net', '--app', 'Notes')
  const { page, touched } = await device()
  await page.goto((await porchlight.mailedLink('ben@example.net')).links[0])
  await page.click('button.primary')
  await page.getByText('here are the notes').waitFor()
  await page.evaluate(async () => (window.answer = await fetch('/stream')) && true) // it has begun
  const open = page.evaluate(() => window.answer.text().then(() => 'ended', () => 'cut'))
  const options = await porchlight.json('options', 'notes', '--only-passkey')
  assert.equal(options.onlyPasskey, true)
  assert.equal(await open, 'cut')

  await t.test('a guest makes one on the way, and is in', async () => {
    assert.equal(await page.evaluate(async () => (await fetch('/')).status), 401)
    await page.goto(url)
    await page.waitForSelector('h1:has-text("This app asks for a passkey")')
    await look(page, 'passkey-asked')
    await touched(true)
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('here are the notes').waitFor()
    await touched(false)
  })

  await t.test('the owner is in by the link of this computer', async () => {
    const owner = await (await browser.newContext()).newPage()
    await owner.goto((await porchlight.json('open', 'notes')).url)
    await owner.getByText('here are the notes').waitFor()
    await owner.context().close()
  })

  await t.test('a mail is not enough where there is one', async () => {
    const other = await device()
    await other.page.goto(url)
    await other.page.fill('input[name=email]', 'ben@example.net')
    await other.page.getByRole('button', { name: 'Send me a link' }).click()
    await other.page.waitForURL('**/signin/check**')
    await other.page.goto((await porchlight.mailedLink('ben@example.net')).links[0])
    await other.page.click('button.primary')
    await other.page.waitForSelector('h1:has-text("Use your passkey")')
    await look(other.page, 'passkey-use')
    await other.page.goto(url)
    await other.page.waitForSelector('h1:has-text("Use your passkey")')
    await other.page.context().close()
  })
})
