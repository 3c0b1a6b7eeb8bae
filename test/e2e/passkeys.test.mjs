// Passkeys in Chromium, with the virtual authenticator of its DevTools: one is made after the
// first mailed link, one touch signs in again, and what was removed, copied or is asked for by
// another origin does not. The pages are looked at by axe and used by the keyboard alone.
import assert from 'node:assert/strict'
import path from 'node:path'
import { mkdir } from 'node:fs/promises'
import test from 'node:test'
import axe from 'axe-core'
import { startControl } from './control.mjs'
import { press, startBrowser } from './porchlight.mjs'

const shots = process.env.PORCHLIGHT_SHOTS

test('passkeys', async (t) => {
  const control = await startControl(t)
  const browser = await startBrowser(t, control)
  if (shots) await mkdir(shots, { recursive: true })
  await control.cli('account', 'add', 'maya@example.com')

  // device is a browser with an authenticator of its own, which answers at once while touched says so. One
  // that is old offers no passkeys in fields.
  async function device({ authenticator = true, old = false, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width: 375, height: 812 }, reducedMotion: 'reduce', ...options })
    const page = await context.newPage()
    const complaints = []
    page.on('console', (m) => m.type() === 'error' && !/the server responded with a status of/.test(m.text()) && complaints.push(m.text()))
    if (old) await page.addInitScript(() => (PublicKeyCredential.isConditionalMediationAvailable = async () => false))
    const devtools = await context.newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    const add = async (transport) => (await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: { protocol: 'ctap2', transport, hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: transport === 'usb' },
    })).authenticatorId
    const id = authenticator && (await add('internal'))
    return {
      page,
      complaints,
      go: (pathname) => page.goto(new URL(pathname, control.authUrl).href),
      // touches has the page asked for anew answer by a touch: in the field for the address, nothing
      // is pressed. The page there could answer before it goes.
      async touches() {
        const here = page.url()
        await page.goto('about:blank')
        await this.touched(true)
        await page.goto(here, { waitUntil: 'commit' })
      },
      add, // another authenticator of this device
      remove: () => devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: id }),
      touched: (enabled, authenticatorId = id) => devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
      credentials: async () => (await devtools.send('WebAuthn.getCredentials', { authenticatorId: id })).credentials,
      put: (credential) => devtools.send('WebAuthn.addCredential', { authenticatorId: id, credential }),
      async mailed(email) {
        await page.fill('input[name=email]', email)
        await page.click('button.primary')
        await page.waitForURL('**/signin/check**')
        await page.goto((await control.mail(email, /sign in|Anmelden/)).links[0])
      },
      async signOut() {
        await page.goto(control.authUrl + '/account')
        await page.click('header button')
        await page.waitForURL('**/signin**')
      },
    }
  }

  async function look(who, name) {
    await who.page.waitForLoadState()
    await who.page.evaluate(axe.source)
    for (const colorScheme of ['light', 'dark']) {
      await who.page.emulateMedia({ colorScheme })
      for (const width of [375, 1100]) {
        await who.page.setViewportSize({ width, height: 812 })
        assert.equal(await who.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, name)
        if (shots) await who.page.screenshot({ path: path.join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true })
      }
      const { violations } = await who.page.evaluate(() => axe.run())
      assert.deepEqual(violations.map((v) => `${name} ${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [])
    }
    await who.page.setViewportSize({ width: 375, height: 812 })
    assert.deepEqual(who.complaints.splice(0), [], name)
  }

  const maya = await device()
  const { page } = maya
  await maya.go('/account')
  await page.waitForSelector('form[data-sign-in]:not([hidden])')
  await look(maya, 'passkey-signin')
  await maya.mailed('maya@example.com')
  await page.waitForSelector('input[name=passkey]:not([disabled])', { state: 'attached' })
  await page.click('button.primary')
  await page.waitForURL('**/account/passkeys/new?return=%2Faccount')
  await look(maya, 'passkey-offer')
  // By the keyboard alone.
  await page.locator('body').press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Add a passkey')
  await maya.touched(true)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/account')
  await maya.touched(false)
  await control.mail('maya@example.com', /passkey was added/)
  const [made] = await maya.credentials()
  assert.equal(made.rpId, new URL(control.authUrl).hostname)
  assert.ok(made.isResidentCredential)
  assert.match(await page.textContent('main'), /Chrome on Linux.*This browser · by passkey/)
  await look(maya, 'passkey-account')
  await page.getByRole('link', { name: 'Delete my account…' }).click()
  await page.waitForSelector('h1:has-text("Delete your account?")')
  await look(maya, 'account-delete')
  await page.getByRole('link', { name: 'Keep it' }).click()
  const file = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Export my data' }).click()
  assert.equal((await file).suggestedFilename(), 'porchlight-account.json')

  await t.test('one touch instead of a mail', async () => {
    await maya.signOut()
    await maya.touches()
    await page.waitForURL('**/account')
    await maya.touched(false)
    assert.match(await page.textContent('main'), /used on/)
  })

  await t.test('a device that makes none is not asked', async () => {
    const plain = await device({ authenticator: false })
    await plain.go('/account')
    await plain.mailed('maya@example.com')
    await plain.page.click('button.primary')
    await plain.page.waitForURL('**/account')
    // Its mail is not enough to add one.
    await plain.page.getByRole('link', { name: 'Add a passkey' }).click()
    await plain.page.waitForSelector('h1:has-text("Use your passkey")')
    await look(plain, 'passkey-use')
    await plain.page.context().close()
  })

  await t.test('another origin gets no answer for the RP id', async () => {
    await page.goto(control.authUrl + '/about')
    const refused = await page.evaluate(async (rpId) => {
      try {
        await navigator.credentials.get({ publicKey: { rpId, challenge: new Uint8Array(32), userVerification: 'required' } })
      } catch (err) {
        return err.name
      }
    }, 'localhost')
    assert.equal(refused, 'SecurityError')
  })

  await t.test('in German, and with a second device', async () => {
    const lena = await device({ extraHTTPHeaders: { 'Accept-Language': 'de' } })
    const { page } = lena
    await control.cli('account', 'add', 'lena@example.com')
    await lena.go('/account')
    await page.getByRole('button', { name: 'Passkey verwenden' }).waitFor()
    await look(lena, 'passkey-signin-de')
    await lena.mailed('lena@example.com')
    await page.waitForSelector('input[name=passkey]:not([disabled])', { state: 'attached' })
    await page.click('button.primary')
    await page.getByRole('button', { name: 'Passkey hinzufügen' }).waitFor()
    await look(lena, 'passkey-offer-de')
    await lena.touched(true)
    await page.click('button.primary')
    await page.waitForURL('**/account')
    // The device has one, and makes no other.
    await press(page, page.getByRole('link', { name: 'Passkey hinzufügen' }))
    await page.click('button.primary')
    await page.getByRole('alert').waitFor()
    assert.equal((await lena.credentials()).length, 1)
    const another = await lena.add('usb')
    await page.click('button.primary')
    await page.waitForURL('**/account')
    assert.equal(await page.getByRole('link', { name: /Passkey .* ändern/ }).count(), 2)
    await look(lena, 'passkey-account-de')
    // The first one is lost: the second signs in.
    await lena.remove()
    await lena.signOut()
    await page.getByRole('button', { name: 'Passkey verwenden' }).waitFor()
    await lena.touched(true, another)
    await page.getByRole('button', { name: 'Passkey verwenden' }).click()
    await page.waitForURL('**/account')
    await page.context().close()
  })

  await t.test('a browser that distrusts the certificate is offered none', async () => {
    const elsewhere = await startControl(t, { domain: 'porch.example' })
    const distrusts = await startBrowser(t, elsewhere, ['--host-resolver-rules=MAP *.porch.example 127.0.0.1'], [])
    const page = await (await distrusts.newContext()).newPage()
    await elsewhere.cli('account', 'add', 'maya@example.com')
    const goes = (url) => page.goto(url).catch((err) => assert.match(err.message, /ERR_CERT_AUTHORITY_INVALID/))
    await goes(elsewhere.authUrl + '/account')
    while (!page.url().includes('/signin')) {
      await page.locator('body').pressSequentially('thisisunsafe') // goes on in spite of the warning
      await page.waitForURL('**/signin**', { timeout: 2000 }).catch(() => {})
    }
    await page.locator('form[data-sign-in]').waitFor({ state: 'hidden' })
    await page.fill('input[name=email]', 'maya@example.com')
    await page.click('button.primary')
    await page.waitForURL('**/signin/check**')
    await page.goto((await elsewhere.mail('maya@example.com', /sign in/)).links[0])
    await page.click('button.primary')
    await page.waitForURL('**/account')
    await page.getByRole('link', { name: 'Add a passkey' }).click()
    await page.getByText('it does not trust this server’s certificate').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Add a passkey' }).count(), 0)
  })

  await t.test('of a passkey and its copy the one that comes later is refused, and told', async () => {
    const other = await device({ old: true })
    await other.put({ ...made, signCount: made.signCount + 10 })
    await other.touched(true)
    await other.go('/account')
    await other.page.getByRole('button', { name: 'Use a passkey' }).click()
    await other.page.waitForURL('**/account')
    await other.page.context().close()
    await maya.signOut()
    await maya.touches()
    await page.waitForSelector('h1:has-text("That passkey was not taken")')
    await maya.touched(false)
    assert.match(await page.textContent('main'), /There may be a copy/)
    await look(maya, 'passkey-refused')
    assert.equal((await control.json('outbox')).filter((m) => /copy of your passkey/.test(m.subject)).length, 1)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await maya.mailed('maya@example.com')
    await page.click('button.primary')
    await page.waitForURL('**/account')
    assert.match(await page.textContent('main'), /There may be a copy: it opens nothing any more/)
  })

  await t.test('a removed one opens nothing', async () => {
    await page.getByRole('link', { name: /^Change the passkey/ }).click()
    await page.waitForURL('**/account/passkeys/change**')
    await look(maya, 'passkey-change')
    await page.fill('input[name=name]', 'Blue key')
    await page.click('button.primary')
    await page.waitForURL('**/account')
    await page.getByRole('link', { name: 'Change the passkey Blue key' }).click()
    await page.click('button.danger')
    await page.waitForURL('**/account')
    assert.equal(await page.getByText('Blue key').count(), 0)
    await maya.signOut()
    await maya.touches()
    await page.waitForSelector('h1:has-text("That passkey was not taken")')
    await maya.touched(false)
    assert.deepEqual(maya.complaints, [])
  })

  // The rest has mail turned off, and comes back.
  const { credential } = await control.json('account', 'add', 'maya@example.com', '--short', 'maya')
  const another = await device()
  const codes = []
  const told = async (subject) => assert.ok((await control.json('outbox')).some((m) => subject.test(m.subject)), String(subject))
  await t.test('mail off: ten codes, shown once', async () => {
    await another.go('/account')
    await another.mailed('maya@example.com')
    await another.page.waitForSelector('input[name=passkey]:not([disabled])', { state: 'attached' })
    await another.page.click('button.primary')
    await another.page.waitForURL('**/account/passkeys/new**')
    await another.touched(true)
    await another.page.click('button.primary')
    await another.page.waitForURL('**/account')
    await another.touched(false)
    await another.page.getByRole('link', { name: 'Turn signing in by mail off…' }).click()
    await another.page.waitForURL('**/account/mail')
    await look(another, 'mail-off')
    await another.page.locator('body').press('Tab')
    assert.match(await another.page.evaluate(() => document.activeElement.textContent), /^Turn it off/)
    await another.page.keyboard.press('Enter')
    await another.page.waitForSelector('h1:has-text("Your recovery codes")')
    codes.push(...(await another.page.locator('li code').allTextContents()))
    assert.equal(new Set(codes).size, 10)
    await look(another, 'recovery-codes')
    await told(/does not sign you in/)
    await another.go('/account')
    assert.match(await another.page.textContent('main'), /10 recovery codes are left/)
    await look(another, 'account-mail-off')
  })

  await t.test('with mail off the mail tells of the passkey, which still signs in', async () => {
    await another.signOut()
    await another.page.fill('input[name=email]', 'maya@example.com')
    await another.page.click('button.primary')
    await another.page.waitForURL('**/signin/check**')
    await another.page.goto((await control.mail('maya@example.com', /Sign in with your passkey/)).links[0])
    await another.touches()
    await another.page.waitForURL('**/account')
    await another.touched(false)
  })

  await t.test('back by a recovery code, and mail on again', async () => {
    const lost = await device({ authenticator: false, extraHTTPHeaders: { 'Accept-Language': 'de' } })
    await lost.go('/account/mail')
    await press(lost.page, lost.page.getByRole('link', { name: 'Ersatzcode verwenden' }))
    await look(lost, 'recovery-de')
    await lost.page.fill('input[name=email]', 'maya@example.com')
    await lost.page.fill('input[name=code]', 'abcd efgh ijkl mnop')
    await lost.page.click('button.primary')
    await lost.page.getByText('Dieser Code stimmt für diese Adresse nicht').waitFor()
    await lost.page.fill('input[name=code]', codes[0].toUpperCase())
    await lost.page.click('button.primary')
    await lost.page.waitForURL('**/account/mail')
    await lost.page.getByText('9 Codes sind übrig').waitFor()
    await look(lost, 'mail-is-off-de')
    await told(/recovery code was used|Ersatzcode wurde verwendet/)
    await lost.page.click('button.danger')
    await lost.page.waitForURL('**/account')
    await told(/E-Mails melden Sie wieder an/)
    await lost.page.context().close()
    await another.go('/account/mail')
    await another.page.click('button.primary')
    await another.page.waitForSelector('h1:has-text("Your recovery codes")')
  })

  await t.test('back by a computer of her own', async () => {
    const lost = await device({ authenticator: false })
    await lost.page.goto((await control.call('POST', '/v1/signin/link', {}, credential)).body.url)
    await lost.page.getByRole('button', { name: 'Sign in as maya@example.com' }).click()
    await lost.page.waitForURL('**/account')
    await lost.go('/account/mail')
    await lost.page.getByRole('button', { name: 'Turn mail on again' }).waitFor()
    await told(/Your computer made a link/)
    await lost.page.context().close()
  })

  await t.test('what the operator begins is stopped by a link', async () => {
    await control.cli('account', 'recover', 'maya@example.com')
    const anybody = await device({ authenticator: false })
    await anybody.page.goto((await control.mail('maya@example.com', /passkeys are about to be removed/)).links[0])
    await look(anybody, 'recovery-stop')
    await anybody.page.click('button.primary')
    await anybody.page.waitForSelector('h1:has-text("Your passkeys stay")')
    await anybody.page.context().close()
  })
})
