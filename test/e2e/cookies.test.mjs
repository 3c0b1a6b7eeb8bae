// A page of one computer fills a visitor's browser with cookies for the domain
// that all computers share with the auth host. The next visit of the sign-in page
// shows a page that says so, and the one after it works.
import assert from 'node:assert/strict'
import test from 'node:test'
import { startControl } from './control.mjs'
import { startBrowser } from './porchlight.mjs'

const domain = 'porch.test' // on no list of public suffixes, as most are not

test('thirty large cookies keep nobody from signing in', async (t) => {
  const control = await startControl(t, { domain })
  const browser = await startBrowser(t, control, [`--host-resolver-rules=MAP *.${domain} 127.0.0.1`])
  const context = await browser.newContext()
  const page = await context.newPage()
  const signIn = new URL('/signin', control.authUrl).href

  const filling = `https://notes.maya.${domain}/`
  await context.route(filling, (route) =>
    route.fulfill({
      contentType: 'text/html',
      body: `<!doctype html><title>Notes</title><script>
        for (let i = 0; i < 30; i++) document.cookie = 'c' + i + '=' + 'x'.repeat(4000) + '; Domain=${domain}; Path=/; Secure'
        document.title = 'Filled'
      </script>`,
    }),
  )
  await page.goto(filling)
  await page.waitForFunction(() => document.title === 'Filled')
  const held = (await context.cookies(signIn)).filter((c) => c.name.startsWith('c'))
  assert.equal(held.length, 30, 'the browser sends them to the auth host')

  const refused = await page.goto(signIn)
  assert.equal(refused.status(), 431)
  assert.match(await page.textContent('main, body'), /more cookies in this browser than can be sent along/)

  const works = await page.goto(signIn)
  assert.equal(works.status(), 200)
  assert.ok(await page.isVisible('input[name=email]'))
  assert.deepEqual((await context.cookies(signIn)).filter((c) => c.name.startsWith('c')), [])
})
