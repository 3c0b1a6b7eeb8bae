// Every page of the control plane as a person sees it: on a phone and on a
// desk, light and dark. axe finds nothing, nothing is cut off sideways, the
// browser refuses nothing the page asks for, and pages without script work.
// What an address alone opens is opened in the pseudo-locale too: longer words
// than English has fit the narrowest phone, and none stands in a template.
//
// With PORCHLIGHT_SHOTS=DIR a picture of each is written, for people to look at.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import axe from 'axe-core'
import { startControl } from './control.mjs'
import { press, startBrowser } from './porchlight.mjs'
import { plainWords } from './pseudo.mjs'

const widths = [375, 1100]
const themes = ['light', 'dark']
const longLabel = 'The family’s very long list of everything that has to be repaired before the winter'

test('the pages of the control plane', async (t) => {
  const control = await startControl(t)
  const browser = await startBrowser(t, control)
  const shots = process.env.PORCHLIGHT_SHOTS
  if (shots) await mkdir(shots, { recursive: true })

  await control.cli('account', 'add', 'maya@example.com')
  await control.cli('account', 'add', 'a.rather.long.address.indeed@department.university.example.net')

  // person is a browser of somebody's, whose pages are looked at.
  async function person() {
    const context = await browser.newContext({ viewport: { width: widths[0], height: 812 }, reducedMotion: 'reduce' })
    const complaints = []
    const who = {
      page: null,
      complaints,
      async open() {
        await who.page?.close()
        who.page = await context.newPage()
        who.page.on('console', (m) => {
          // A page's own status is an "error" to the browser, and none to us.
          if (m.type() === 'error' && !/the server responded with a status of/.test(m.text())) complaints.push(m.text())
        })
      },
      async submit(selector = 'button.primary') {
        await press(who.page, selector)
      },
      async go(pathname) {
        return who.page.goto(new URL(pathname, control.authUrl).href)
      },
      // leave presses what leads to another host, where nobody answers here, and
      // returns where that is.
      async leave(selector = 'button.primary') {
        const [posted] = await Promise.all([
          who.page.waitForResponse((r) => r.request().method() === 'POST'),
          who.page.waitForEvent('requestfailed'), // the browser did go there: the policy let it
          who.page.click(selector, { noWaitAfter: true }),
        ])
        assert.equal(posted.status(), 303)
        await who.open()
        complaints.length = 0
        return posted.headers().location
      },
      // signIn asks for a link and clicks it, in this browser.
      async signIn(email) {
        const { page } = who
        await page.fill('input[name=email]', email)
        await page.click('button.primary')
        await page.waitForURL('**/signin/check**')
        await page.goto((await control.mail(email, /sign in/)).links[0])
        await page.click('button.primary')
        await page.waitForURL((url) => !url.pathname.startsWith('/signin'))
      },
    }
    await who.open()
    return who
  }

  // What people and programs are called on these pages.
  const names = ['Pocket Notes', 'Notes', longLabel, 'The calendar on the old tablet that hangs in the kitchen, box'.slice(0, 60), 'The pictures from Lisbon are in, and everything else that belongs to them. ' + 'Have a look when you find the time. '.repeat(3).trim(), 'Porchlight', 'guests-own-computer', 'guest-desktop', 'maya-laptop', 'a-machine-with-a-name-as-long-as-machines-have-them-in-an-office-of-many', 'Maya 𐤀 מאיה', 'maya', 'linux', 'Chrome', 'Linux', 'repairs', 'notes', 'English', 'Deutsch']
  const spoken = new Set()

  // speak opens the address of a page in the pseudo-locale. What a form led to is left
  // out: it would have to be sent again.
  async function speak(who, name) {
    const { pathname, href } = new URL(who.page.url())
    const shown = await who.page.textContent('h1')
    if (spoken.has(pathname + shown)) return
    spoken.add(pathname + shown)
    const page = await who.page.context().newPage()
    await page.setExtraHTTPHeaders({ 'Accept-Language': 'en-XA' })
    await page.goto(href)
    for (const width of [320, 720]) {
      await page.setViewportSize({ width, height: 800 })
      const cut = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      assert.equal(cut, 0, `${name} in the pseudo-locale is ${cut} px too wide at ${width}`)
    }
    const plain = await plainWords(page, names)
    if (shots) await page.screenshot({ path: path.join(shots, `${name}-720-pseudo.png`), fullPage: true })
    await page.close()
    assert.deepEqual(plain, [], `${name} says this outside of the catalogue`)
  }

  // look holds the page that is open to what every page promises.
  // but are rules of axe that this page cannot keep.
  async function look(who, name, heading, ...but) {
    await t.test(name, async () => {
      const { page } = who
      await page.waitForLoadState()
      assert.match(await page.textContent('h1'), heading)
      assert.equal(await page.locator('h1').count(), 1)
      assert.ok((await page.locator('button.primary').count()) <= 1, 'one thing to press')
      assert.equal(await page.locator('script:not([src^="/assets/times-"], [src^="/assets/passkeys-"]), [style], [onclick]').count(), 0)
      await page.evaluate(axe.source)
      for (const colorScheme of themes) {
        await page.emulateMedia({ colorScheme })
        for (const width of widths) {
          await page.setViewportSize({ width, height: width < 500 ? 812 : 900 })
          const cut = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
          assert.equal(cut, 0, `${name} is ${cut} px too wide at ${width}`)
          if (shots) await page.screenshot({ path: path.join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true })
        }
        const small = await page.$$eval('.btn:not(.inline), .field', (all) =>
          all.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 46).map((e) => e.outerHTML),
        )
        assert.deepEqual(small, [], 'what is pressed and typed into is 46 px high')
        // Nothing but colours differs between the themes.
        const rules = Object.fromEntries(but.map((rule) => [rule, { enabled: false }]))
        const options = colorScheme === 'light' ? { rules } : { runOnly: ['color-contrast'] }
        const { violations } = await page.evaluate((o) => axe.run(document, o), options)
        assert.deepEqual(violations.map((v) => `${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [])
      }
      if (!but.length) await speak(who, name)
      await page.emulateMedia({ colorScheme: 'light' })
      await page.setViewportSize({ width: widths[0], height: 812 })
      assert.deepEqual(who.complaints.splice(0), [])
    })
  }

  // ask is a computer that wants to be connected.
  async function ask(machine, name) {
    return (await control.call('POST', '/v1/enrol', { machine, platform: 'linux', name, apps: ['notes'] })).body
  }
  async function arrive(started) {
    const { status, body } = await control.call('POST', '/v1/enrol/token', { deviceCode: started.device_code })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  const maya = await person()
  const { page } = maya
  await maya.go('/signin')
  await look(maya, 'signin', /Sign in/)
  await page.$eval('input[name=email]', (e) => (e.type = 'text'))
  await page.fill('input[name=email]', 'maya')
  await maya.submit()
  await look(maya, 'signin-invalid', /Sign in/)
  await page.fill('input[name=email]', 'maya@example.com')
  await maya.submit()
  await look(maya, 'check', /Check your mail/)
  await page.fill('input[name=code]', '000 000')
  await maya.submit()
  await look(maya, 'check-wrong', /Check your mail/)
  const link = (await control.mail('maya@example.com', /sign in/)).links[0]
  await page.goto(link)
  await look(maya, 'link', /Sign in/)
  await maya.submit()
  await page.waitForURL('**/account')
  await look(maya, 'account-new', /Your account/)
  await page.goto(link)
  await look(maya, 'link-over', /This link is over/)

  await maya.go('/device')
  await look(maya, 'device', /Connect a computer/)
  await page.fill('input[name=code]', 'BBBB-BBBB')
  await maya.submit()
  await look(maya, 'device-wrong', /Connect a computer/)
  const first = await ask('maya-laptop', 'maya')
  await maya.go('/device?code=' + first.user_code)
  assert.equal(await page.inputValue('input[name=code]'), first.user_code)
  await maya.submit()
  await look(maya, 'device-confirm', /Connect this computer/)
  await page.fill('input[name=name]', 'notes')
  await maya.submit()
  await look(maya, 'device-confirm-problem', /Connect this computer/)
  await page.fill('input[name=name]', 'maya')
  await maya.submit()
  await look(maya, 'device-connected', /Connected/)
  const computer = await arrive(first)
  assert.equal(computer.computer.host, `maya.localhost:${new URL(control.authUrl).port}`)

  const second = await ask('a-machine-with-a-name-as-long-as-machines-have-them-in-an-office-of-many', 'maya')
  await maya.go('/device?code=' + second.user_code)
  await maya.submit()
  await look(maya, 'device-confirm-long', /Connect this computer/)
  await maya.submit()
  await look(maya, 'device-replace', /Replace maya\.localhost/)
  await press(page, 'button[value=""]')
  await look(maya, 'device-another-name', /Connect this computer/)
  await press(page, 'button[value=deny]')
  await look(maya, 'device-denied', /Nothing was connected/)

  const credential = computer.credential
  const apps = [
    { id: 'a1', name: 'notes', label: 'Notes', live: true },
    { id: 'a2', name: 'repairs', label: longLabel, live: true },
  ]
  assert.equal((await control.call('PUT', '/v1/apps', { apps }, credential)).status, 204)
  for (const email of ['bob@example.com', 'a.rather.long.address.indeed@department.university.example.net']) {
    const invited = await control.call('POST', '/v1/people/invite', { email, apps: ['a2', 'a1'] }, credential)
    assert.equal(invited.status, 200, JSON.stringify(invited.body))
  }

  const client = await control.json('client', 'add', '--name', 'Pocket Notes', '--redirect-uri', 'https://pocket.example.org/callback')
  const authorize =
    '/oauth/authorize?' +
    new URLSearchParams({
      client_id: client.clientId,
      redirect_uri: 'https://pocket.example.org/callback',
      response_type: 'code',
      state: 'a-state',
      scope: 'connect',
      code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
      code_challenge_method: 'S256',
    })
  await maya.go(authorize)
  await look(maya, 'consent', /Allow Pocket Notes/)

  // Bob opens his invitation, in a browser of his own.
  const bob = await person()
  await bob.page.goto((await control.mail('bob@example.com', /shares/)).links[0])
  await look(bob, 'invitation', /shares/)
  const refused = await person()
  await refused.go('/invitation?token=' + 'x'.repeat(43))
  await look(refused, 'invitation-over', /This invitation does not work/)
  assert.equal(await bob.leave(), `https://repairs.${computer.computer.host}/`)

  // Dora is handed hers as a link.
  const line = 'The pictures from Lisbon are in, and everything else that belongs to them. ' + 'Have a look when you find the time. '.repeat(3).trim()
  const handed = await control.call('POST', '/v1/people/invitations', { emails: ['dora@example.net', 'erik@example.net'], apps: ['a2'], line, name: 'Maya 𐤀 מאיה' }, credential)
  assert.equal(handed.status, 200, JSON.stringify(handed.body))
  const dora = await person()
  await dora.page.goto(handed.body.invitations[0].link.url)
  await look(dora, 'invitation-named', /invites you/)
  await dora.submit()
  await look(dora, 'invitation-code', /Check your mail/)
  await dora.page.fill('input[name=code]', '000 000')
  await dora.submit()
  await look(dora, 'invitation-code-wrong', /Check your mail/)
  await dora.page.goto((await control.mail('dora@example.net', /sign in/)).links[0])
  await look(dora, 'link-invitation', /Sign in/)
  await dora.submit()
  await look(dora, 'invitation-proven', /shares/)
  await dora.leave()
  await dora.page.goto(handed.body.invitations[0].link.url)
  await look(dora, 'invitation-used-here', /used already/)
  await refused.page.goto(handed.body.invitations[0].link.url)
  await look(refused, 'invitation-used', /used already/)
  const erik = await person()
  await erik.page.goto((await control.mail('erik@example.net', /shares/)).links[0])
  await look(erik, 'invitation-line', /shares/)

  const guest = await person()
  const long = 'a.rather.long.address.indeed@department.university.example.net'
  await guest.page.goto((await control.mail(long, /shares/)).links[0])
  await look(guest, 'invitation-long', /shares/)
  await guest.leave()
  await guest.go('/account')
  await guest.signIn(long)
  await look(guest, 'account-member', /Your account/)
  await press(guest.page, 'a[href^="/account/leave"]')
  await look(guest, 'account-leave', /Leave maya/)

  // Somebody with several computers to choose from.
  const third = await ask('guest-desktop', 'guests-own-computer')
  await guest.go('/device?code=' + third.user_code)
  await guest.submit()
  await guest.submit()
  await arrive(third)
  await guest.go(authorize)
  await look(guest, 'consent-choice', /Allow Pocket Notes/)
  const allowed = new URL(await guest.leave('button[value=allow]'))
  assert.equal(allowed.host, 'pocket.example.org')
  // tokens asks for some, as the client does, and returns the answer.
  const tokens = (fields) =>
    control.request('/oauth/token', {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ client_id: client.clientId, client_secret: client.clientSecret, ...fields }).toString(),
    })
  const got = await tokens({
    grant_type: 'authorization_code',
    code: allowed.searchParams.get('code'),
    redirect_uri: 'https://pocket.example.org/callback',
    code_verifier: 'v'.repeat(43),
  })
  assert.equal(got.status, 200, got.body)
  await guest.go('/account')
  await look(guest, 'account-all', /Your account/)
  await guest.submit('button[aria-label="Revoke Pocket Notes"]')
  assert.equal(await guest.page.locator('text=Pocket Notes').count(), 0)
  const refresh = await tokens({ grant_type: 'refresh_token', refresh_token: JSON.parse(got.body).refresh_token })
  assert.deepEqual([refresh.status, JSON.parse(refresh.body).error], [400, 'access_denied'])

  // App passwords, on a computer of one's own and on one that is shared.
  const own = await person()
  await own.go('/account/passwords?computer=maya')
  await look(own, 'signin-passwords', /Sign in/)
  await own.signIn(long)
  await look(own, 'passwords-none', /App passwords/)
  const passwordName = 'The calendar on the old tablet that hangs in the kitchen, box'
  for (let n = 0; n < 2; n++) {
    await own.page.fill('input[name=name]', passwordName.slice(0, 60))
    await own.page.selectOption('select', 'a2')
    await own.submit()
    if (n === 0) await look(own, 'password-made', /Your new app password/)
    const shown = await own.page.locator('.facts').innerText()
    assert.match(shown, /plp_[a-z2-7]{32}/)
    assert.match(shown, /repairs\.maya\./)
    assert.ok(shown.includes(long))
    if (n === 0) {
      await own.page.reload() // sends the form once more
      await look(own, 'password-again', /App passwords/)
      assert.match(await own.page.textContent('.problem'), /This form was sent before/)
      await press(own.page, own.page.getByRole('link', { name: 'On all computers' }))
      await look(own, 'passwords-all', /App passwords/)
      await own.go('/account/passwords?computer=maya')
    } else {
      await own.submit('a.primary')
    }
  }
  await look(own, 'passwords', /App passwords/)
  assert.equal(await own.page.getByText(passwordName.slice(0, 60)).count(), 2)
  await press(own.page, own.page.getByRole('button', { name: /^Revoke/ }).first())
  assert.equal(await own.page.getByText(passwordName.slice(0, 60)).count(), 1)
  await own.go('/account')
  await look(own, 'account-passwords', /Your account/)

  const carol = await person()
  await control.cli('account', 'add', 'carol@example.com')
  const visit =
    '/visit?' +
    new URLSearchParams({
      computer: 'maya',
      app: 'a1',
      redirect_uri: `https://notes.${computer.computer.host}/.porchlight/callback`,
      state: 'a-state',
      code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
      code_challenge_method: 'S256',
    })
  await carol.go(visit)
  await look(carol, 'signin-visit', /Sign in/)
  await carol.signIn('carol@example.com')
  await look(carol, 'no-access', /This isn’t shared with you/)

  // Asking the owner, whose computer takes questions of everybody now.
  assert.equal((await control.call('PUT', '/v1/apps', { apps, knocks: 'everybody' }, credential)).status, 204)
  await carol.page.reload()
  await look(carol, 'knock-ask', /This isn’t shared with you/)
  await carol.submit()
  // It goes on by itself, without script, and would do so under axe, too.
  await carol.page.evaluate(() => stop())
  await look(carol, 'knock-waiting', /maya has been asked/, 'meta-refresh')
  const asked = await control.tunnel(credential)
  asked.close()
  const [{ id: knock }] = asked.told.knocks
  assert.equal((await control.call('POST', '/v1/knocks/answer', { id: knock, answer: 'yes' }, credential)).status, 200)
  await carol.page.reload()
  await look(carol, 'knock-invited', /maya lets you in/)
  await carol.go(authorize)
  await look(carol, 'consent-nothing', /There is no computer to connect/)

  await bob.go('/device')
  await bob.signIn('bob@example.com')
  await look(bob, 'device-refused', /can’t connect computers/)

  // A waiting sync is what makes a computer connected.
  const sync = await control.tunnel(credential)
  await maya.go('/account')
  while ((await page.locator('.dot:not(.off)').count()) === 0) await maya.go('/account')
  await look(maya, 'account-connected', /Your account/)
  sync.close()
  while ((await page.locator('.dot:not(.off)').count()) > 0) await maya.go('/account')
  await look(maya, 'account-owner', /Your account/)
  await press(page, 'a[href^="/account/computer"]')
  await look(maya, 'account-remove', /Remove maya/)
  await page.click('button[value=disconnect]')
  await page.waitForURL('**/account')
  assert.equal((await control.call('GET', '/v1/people', null, credential)).status, 401, 'the credential is over')
  await look(maya, 'account-disconnected', /Your account/)

  await maya.go('/nowhere')
  await look(maya, 'not-found', /Nothing here/)
  await maya.go('/about')
  await look(maya, 'about', /What this is/)
  await maya.go('/account')
  await maya.submit('header button')
  for (let n = 0; (await page.locator('h1').textContent()) !== 'Not so fast'; n++) {
    assert.ok(n < 10, 'the budget for mails has an end')
    await maya.go('/signin')
    await page.fill('input[name=email]', 'nobody@example.com')
    await maya.submit()
  }
  await look(maya, 'too-many', /Not so fast/)
})
