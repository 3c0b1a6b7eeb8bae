// An invitation handed over as a link, on a page as small as a phone's: whoever opens it
// proves the invited address by the code mailed to it, and one click accepts. To anybody
// else it is of no use, and says nothing of the address, the app or the line.
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import test from 'node:test'
import axe from 'axe-core'
import { press, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const phone = { width: 390, height: 844 }
const lena = 'lena@example.com'
const pictures = process.env.PICTURES

test('a link that was handed over opens to the invited address alone', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.end(`<h1>${req.headers['x-service-app']}</h1><p>${req.headers['x-service-email']}</p>`)
  })
  const photos = (await porchlight.publish('photos', 'Secret Photos', port)) + '/'
  await porchlight.cli('settings', '--display-name', 'Maya')
  const [made] = (await porchlight.json('people', 'invite', lena, 'jonas@example.de', '--app', 'Secret Photos', '--line', 'The pictures from Lisbon are in.', '--no-mail')).invitations
  assert.deepEqual(await porchlight.json('outbox'), [], 'nothing is mailed')
  assert.equal((await porchlight.json('people', 'link', lena)).url, made.link.url)
  const browser = await startBrowser(t, porchlight)
  const visitor = async () => (await browser.newContext({ viewport: phone, reducedMotion: 'reduce' })).newPage()

  // looks holds a page to what every page promises, in both themes.
  async function looks(page, name, heading, tells) {
    await page.waitForLoadState()
    assert.match(await page.textContent('h1'), heading)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), phone.width)
    const shown = await page.content()
    for (const secret of [lena, 'Secret', 'Lisbon']) assert.equal(shown.includes(secret), tells, `${name}: ${secret}`)
    assert.ok(!/\b[45]\d\d\b/.test((await page.textContent('main')).replace(/:\d+/g, '')), 'no status number')
    await page.evaluate(axe.source)
    for (const colorScheme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme })
      const { violations } = await page.evaluate(() => axe.run(document))
      assert.deepEqual(violations.map((v) => `${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [])
      if (!pictures) continue
      await mkdir(pictures, { recursive: true })
      await page.screenshot({ path: `${pictures}/${name}-phone-${colorScheme}.png` })
    }
  }

  const page = await visitor()
  const posts = []
  page.on('request', (r) => r.method() === 'POST' && posts.push(new URL(r.url()).pathname))
  await page.goto(made.link.url)
  await looks(page, 'invitation-named', /Maya \(.*\) invites you/, false)
  assert.deepEqual([posts, await porchlight.json('outbox')], [[], []], 'looking changes nothing')
  await page.click('text=Mail me the code')
  await page.waitForSelector('input[name=code]')
  await looks(page, 'invitation-code', /Check your mail/, false)
  const mail = await porchlight.mailedLink(lena)
  const code = mail.text.match(/Your code: (\d{3} \d{3})/)[1]

  await t.test('somebody it was forwarded to, even with the code', async () => {
    const other = await visitor()
    await other.goto(made.link.url)
    await looks(other, 'invitation-forwarded', /invites you/, false)
    await other.click('text=Mail me the code')
    await other.fill('input[name=code]', code)
    await other.click('button.primary')
    assert.match(await other.textContent('.problem'), /That code is not right/)
    await press(other, 'text=What this is')
    await other.goBack() // no form has to be sent again for it
    assert.match(await other.textContent('.problem'), /That code is not right/)
  })

  await page.fill('input[name=code]', code)
  await page.click('button.primary')
  await page.waitForSelector('blockquote')
  await looks(page, 'invitation-proven', /Maya \(.*\) shares .?Secret Photos.? with you/, true)
  assert.equal(await page.textContent('figcaption'), 'Maya wrote:')
  assert.equal((await porchlight.json('people')).members.find((p) => p.email === lena).status, 'pending')
  await page.click('button.primary') // the one click
  await page.waitForURL(photos)
  assert.equal(await page.textContent('p'), lena)
  assert.equal((await porchlight.json('people')).members.find((p) => p.email === lena).status, 'active')

  await page.goto(made.link.url)
  await looks(page, 'invitation-used-here', /used already/, false)
  await page.click('a.primary')
  await page.waitForURL(photos)
  const late = await visitor()
  await late.goto(made.link.url)
  await looks(late, 'invitation-used', /used already/, false)
  await late.click('a.primary')
  await late.waitForURL('**/signin')

  await porchlight.cli('people', 'remove', 'jonas@example.de')
  await assert.rejects(porchlight.cli('people', 'link', 'jonas@example.de'), /has no invitation that works/)
})
