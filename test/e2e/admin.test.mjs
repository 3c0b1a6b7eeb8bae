// /admin in Chromium, with the virtual authenticator of its DevTools: a mailed link never opens
// it, a touch does; every page is looked at by axe on a phone and on a desk, in both themes, and
// fits in longer words; suspending goes by the keyboard alone and without script; and
// --admin-address puts it elsewhere.
import assert from 'node:assert/strict'
import path from 'node:path'
import { mkdir, readFile } from 'node:fs/promises'
import test from 'node:test'
import axe from 'axe-core'
import { startControl } from './control.mjs'
import { freePort, press, startBrowser } from './porchlight.mjs'
import { plainWords } from './pseudo.mjs'

const shots = process.env.PORCHLIGHT_SHOTS

// operator is a browser that a mail signed in, with a passkey, of somebody who then became one.
async function operator(control, browser, email) {
  await control.cli('account', 'add', email)
  const context = await browser.newContext({ viewport: { width: 375, height: 812 }, reducedMotion: 'reduce' })
  const page = await context.newPage()
  const complaints = []
  page.on('console', (m) => m.type() === 'error' && !/the server responded with a status of/.test(m.text()) && complaints.push(m.text()))
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: false },
  })
  const who = {
    page,
    context,
    complaints,
    touched: (enabled) => devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
    async mailed() {
      await page.fill('input[name=email]', email)
      await page.click('button.primary')
      await page.waitForURL('**/signin/check**')
      await page.goto((await control.mail(email, /sign in/)).links[0])
      await page.click('button.primary')
      await page.waitForURL((url) => !url.pathname.startsWith('/signin/link'))
    },
    // touches has the page asked for anew answer by a touch.
    async touches() {
      const here = page.url()
      await page.goto('about:blank')
      await who.touched(true)
      await page.goto(here, { waitUntil: 'commit' })
    },
  }
  await page.goto(control.authUrl + '/account')
  await who.mailed()
  await page.goto(control.authUrl + '/account/passkeys/new')
  await who.touched(true)
  await page.click('button.primary')
  await page.waitForURL('**/account')
  await who.touched(false)
  await control.cli('operator', 'add', email)
  return who
}

test('/admin', async (t) => {
  const control = await startControl(t, { args: ['--abuse-contact', 'abuse@porch.example'] })
  const browser = await startBrowser(t, control)
  if (shots) await mkdir(shots, { recursive: true })
  const long = 'a.rather.long.address.indeed@department.university.example.net'
  await control.cli('account', 'add', long, '--short', 'a-short-name-that-is-none-at-all')
  const cinema = await control.json('account', 'add', 'lena@example.com', '--short', 'cinema')
  await control.json('client', 'add', '--name', 'Pocket Notes', '--redirect-uri', 'https://pocket.example.org/callback')
  await control.cli('suspend', 'domain', 'spam.example', '--reason', 'Complaint 2210: letters to everybody')
  await control.cli('token', 'add', 'an abuse desk', '--scope', 'read,suspend')
  const olga = await operator(control, browser, 'olga@porch.example')
  const { page } = olga
  // What people and programs are called here, and what the command line and the audit log say.
  const names = ['Porchlight', 'Pocket Notes', 'a-short-name-that-is-none-at-all', 'cinema', 'lena', 'an abuse desk', 'Complaint 2210: letters to everybody', 'Complaint 2211: films without rights', 'account:', 'computer:', 'domain:']

  // What the audit log has of each row is for operators and programs, and in no language.
  const kept = ['GET /outbox', ...['operators', 'accounts', 'tokens', 'suspensions', 'clients', 'audit/verify'].map((path) => `POST /${path}`), 'passkey', 'mail', 'account', 'computer', 'audit export']

  async function look(name, heading) {
    await page.waitForLoadState()
    assert.match(await page.textContent('h1'), heading)
    assert.equal(await page.locator('h1').count(), 1)
    assert.ok((await page.locator('button.primary').count()) <= 1)
    assert.equal(await page.locator('script:not([src^="/assets/times-"]), [style], [onclick]').count(), 0)
    await page.evaluate(axe.source)
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      for (const width of [375, 1100]) {
        await page.setViewportSize({ width, height: 812 })
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${name} at ${width}`)
        if (shots) await page.screenshot({ path: path.join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true })
        const { violations } = await page.evaluate(() => axe.run())
        assert.deepEqual(violations.map((v) => `${name} ${width} ${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [])
      }
    }
    await page.setViewportSize({ width: 375, height: 812 })
    assert.deepEqual(olga.complaints.splice(0), [], name)
    const pseudo = await olga.context.newPage()
    await pseudo.setExtraHTTPHeaders({ 'Accept-Language': 'en-XA' })
    await pseudo.goto(page.url())
    for (const width of [320, 720]) {
      await pseudo.setViewportSize({ width, height: 800 })
      assert.equal(await pseudo.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${name} in the pseudo-locale at ${width}`)
    }
    const plain = await plainWords(pseudo, name.startsWith('admin-audit') ? [...names, ...kept] : names)
    await pseudo.close()
    assert.deepEqual(plain, [], `${name} says this outside of the catalogue`)
  }
  const open = async (pathname) => page.goto(control.authUrl + pathname)

  await t.test('a mailed link does not open it, a touch does', async () => {
    const other = await browser.newContext()
    const stranger = await other.newPage()
    await stranger.goto(control.authUrl + '/admin')
    assert.match(stranger.url(), /\/signin\?return=%2Fadmin$/)
    assert.match(await stranger.textContent('main'), /to run this server/)
    await stranger.fill('input[name=email]', 'olga@porch.example')
    await stranger.click('button.primary')
    await stranger.waitForURL('**/signin/check**')
    await stranger.goto((await control.mail('olga@porch.example', /sign in/)).links[0])
    await stranger.click('button.primary')
    await stranger.waitForSelector('h1:has-text("Use your passkey")')
    await other.close()
    // The passkey was just made by this browser, which is in.
    await open('/admin')
    await page.waitForSelector('h1:has-text("Overview")')
    const [cookie] = (await olga.context.cookies()).filter((c) => c.name.startsWith('__Host-porchlight-admin-'))
    assert.deepEqual([cookie.sameSite, cookie.httpOnly, cookie.secure, cookie.expires], ['Strict', true, true, -1])
  })

  await t.test('every page', async () => {
    await open('/admin')
    await look('admin', /Overview/)
    for (const [tab, heading] of [['accounts', /Accounts/], ['computers', /Computers/], ['nodes', /Nodes/], ['mails', /Mail/], ['clients', /Clients/], ['suspensions', /Suspensions/], ['tokens', /Tokens/], ['audit', /Audit/]]) {
      await page.click(`nav a[href="/admin/${tab}"]`)
      await page.waitForURL('**/admin/' + tab)
      await look('admin-' + tab, heading)
    }
    // What the computer's agent says whose certificate is not renewed.
    const ends = new Date(Date.now() + 2 * 86_400_000).toISOString().replace(/\.\d+/, '')
    await control.call('PUT', '/v1/apps', { apps: [], certificateEnds: ends }, cinema.credential)
    assert.deepEqual((await control.json('computer', 'certificates')).map((c) => [c.name, c.ends]), [['cinema', ends]])
    await open('/admin')
    await page.click('a[aria-label="Show: The certificate of 1 computer is not renewed"]')
    await page.waitForURL('**/admin/computers?kind=certificates')
    assert.match(await page.textContent('tbody'), /cinema/)
    await look('admin-certificates', /Computers/)
    await page.click('nav a[href="/admin/audit"]')
    await page.selectOption('select[name=kind]', 'operator-entered')
    await page.click('button:text-is("Show")')
    await page.waitForURL('**/admin/audit?q=&kind=operator-entered')
    assert.equal(await page.locator('tbody tr').count(), 1)
    await page.click('button:text-is("Verify")')
    await page.waitForSelector('text=each follows the one before')
    await look('admin-audit-verified', /Audit/)
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('text=Export as JSON lines')])
    assert.equal(file.suggestedFilename(), 'porchlight-audit.jsonl')
    const rows = (await readFile(await file.path(), 'utf8')).trim().split('\n').map((line) => JSON.parse(line))
    assert.ok(rows.length > 5 && rows.some((row) => row.kind === 'operator-entered'))
    await open('/admin/tokens')
    await page.click('a:text("an abuse desk")')
    await page.waitForSelector('h1:has-text("an abuse desk")')
    await look('admin-token', /an abuse desk/)
    await page.click('button:text-is("End this token")')
    await page.waitForSelector('text=There is no token.')
    assert.deepEqual(await control.json('token', 'list'), [])
    await open('/admin/suspend')
    await look('admin-suspend', /What is to be suspended/)
    await open('/admin/find?q=cinema')
    await look('admin-find', /Search/)
    await press(page, 'a:text("cinema.")')
    await look('admin-computer', /cinema/)
    await open('/admin/accounts?q=a.rather')
    await press(page, `a:text("${long}")`)
    await look('admin-account', /a\.rather/)
  })

  await t.test('suspended by the keyboard, resumed without script', async () => {
    await open('/admin')
    await page.focus('input[type=search]')
    await page.keyboard.type('lena')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/admin/find?q=lena')
    await page.getByRole('link', { name: 'lena@example.com' }).focus()
    await page.keyboard.press('Enter')
    await page.waitForSelector('h1:has-text("lena@example.com")')
    await page.getByRole('link', { name: 'Suspend…' }).focus()
    await page.keyboard.press('Enter')
    await page.waitForSelector('h1:has-text("Suspend lena@example.com?")')
    assert.match(await page.textContent('main'), /1 computer goes off the net.*ask abuse@porch\.example/s)
    await look('admin-suspend-account', /Suspend lena/)
    await page.getByLabel('Reason, for the audit log').focus()
    await page.keyboard.type('Complaint 2211: films without rights')
    await page.keyboard.press('Enter')
    await page.waitForSelector('text=Suspended since')
    await look('admin-account-suspended', /lena/)
    assert.deepEqual((await control.json('suspensions')).map((s) => [s.name, s.reason]), [['lena@example.com', 'Complaint 2211: films without rights'], ['spam.example', 'Complaint 2210: letters to everybody']])

    const plain = await browser.newContext({ javaScriptEnabled: false, storageState: await olga.context.storageState() })
    const still = await plain.newPage()
    await still.goto(control.authUrl + '/admin/suspensions')
    await still.click('tr:has-text("lena@example.com") a:text("Resume…")')
    await still.click('button:text-is("Resume")')
    await still.waitForSelector('h1:has-text("lena@example.com")')
    assert.equal(await still.locator('text=Suspended since').count(), 0)
    await plain.close()
    assert.equal((await control.json('suspensions')).length, 1)
    await open('/admin/audit')
    assert.match(await page.textContent('tbody'), /Resumed.*Suspended\s+account: Complaint 2211: films without rights.*Looked/s)
    assert.match(await page.textContent('tbody tr:has-text("Complaint 2211")'), /olga@porch\.example.*lena@example\.com/s)
  })

  await t.test('German', async () => {
    const german = await olga.context.newPage()
    await german.setExtraHTTPHeaders({ 'Accept-Language': 'de' })
    await german.goto(control.authUrl + '/admin/suspend?kind=computer&id=cinema')
    assert.match(await german.textContent('main'), /sperren\?.*vom Netz.*Grund, für das Protokoll/s)
    await german.close()
  })

  await t.test('another site opens and sends nothing', async () => {
    const app = await olga.context.newPage()
    await app.route('https://elsewhere.localhost/', (route) =>
      route.fulfill({ contentType: 'text/html', body: `<form method=post action="${control.authUrl}/admin/suspend"><input name=kind value=account><input name=id value=lena@example.com><input name=reason value=x></form><iframe src="${control.authUrl}/admin"></iframe>` }))
    await app.goto('https://elsewhere.localhost/')
    await app.evaluate(() => document.forms[0].submit())
    await app.waitForURL(control.authUrl + '/admin/suspend')
    assert.match(await app.textContent('main'), /sent from another site/)
    await app.close()
    assert.equal((await control.json('suspensions')).length, 1)
  })

  await t.test('out, and the role is gone at once', async () => {
    await open('/admin')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/signin')
    await open('/admin')
    await page.waitForURL('**/signin?return=%2Fadmin')
    await olga.touches()
    await page.waitForURL('**/admin')
    await olga.touched(false)
    await control.cli('operator', 'remove', 'olga@porch.example')
    const answer = await open('/admin')
    assert.equal(answer.status(), 404)
    assert.match(await page.textContent('h1'), /Nothing here/)
  })
})

test('/admin at --admin-address', async (t) => {
  const port = await freePort()
  const control = await startControl(t, { args: ['--admin-address', `127.0.0.1:${port}`] })
  const browser = await startBrowser(t, control)
  const olga = await operator(control, browser, 'olga@porch.example')
  const { page } = olga
  const there = `https://${new URL(control.authUrl).hostname}:${port}`
  await page.goto(control.authUrl + '/account')
  await page.click('header button')
  await page.waitForURL('**/signin**')
  assert.equal((await page.goto(control.authUrl + '/admin')).status(), 404)
  await page.goto(there + '/admin/audit')
  await page.waitForURL(control.authUrl + '/signin?return=%2Fadmin%2Faudit')
  await olga.touches()
  await page.waitForURL(there + '/admin/audit')
  await olga.touched(false)
  assert.match(await page.textContent('h1'), /Audit/)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(control.authUrl + '/signin')
  assert.deepEqual(olga.complaints, [])
})
