// The main job in a real browser: an app asks, the owner approves, a visitor
// signs in by the mailed link and sees the app with a verified identity.
import assert from 'node:assert/strict'
import test from 'node:test'
import { freePort, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const identity = ['x-service-user', 'x-service-email', 'x-service-name', 'x-service-app', 'x-service-role']

test('publish, approve, sign in by the mailed link, see the app', async (t) => {
  const porchlight = await startPorchlight(t)
  const requests = []
  const probes = [] // the agent's own questions, how the app does
  const port = await startServer(t, (req, res) => {
    ;(req.headers['user-agent'] === 'Porchlight-probe' ? probes : requests).push(req)
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.end(`<title>Notes</title><h1>Notes of ${req.headers['x-service-email']}</h1><p id="path">${req.url}</p>`)
  })

  const asked = await porchlight.post('/publish', { name: 'notes', label: 'Notes', localPort: port })
  assert.deepEqual(asked, { status: 202, body: { status: 'pending' } })
  assert.deepEqual(await porchlight.get('/publish/notes'), { status: 200, body: { status: 'pending' } })

  assert.equal(probes.length, 0, 'the app is asked nothing before it is approved')
  await porchlight.cli('approve', 'notes')
  const account = await porchlight.json('account')
  const host = 'notes.' + account.host
  assert.deepEqual(await porchlight.get('/publish/notes'), {
    status: 200,
    body: { status: 'live', host, url: 'https://' + host },
  })

  assert.deepEqual(
    probes.map((r) => [r.method, r.url, r.headers.host, Object.keys(r.headers).filter((h) => h.startsWith('x-') || h === 'cookie')]),
    [['GET', '/', host, []]],
    'it is asked once, by its name and in nobody’s',
  )
  assert.equal((await porchlight.json('apps'))[0].health, 'answers')

  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()
  await page.goto(`https://${host}/a/deep/page?with=query`)
  assert.equal(new URL(page.url()).host, new URL(account.authUrl).host, 'a stranger is sent to sign in')
  assert.equal(requests.length, 0, 'nothing reached the app before the visitor was known')
  assert.ok((await page.textContent('body')).includes(host), 'the page names where the visitor is going')

  await page.fill('input[name=email]', account.email)
  await page.click('button.primary')
  const mail = await porchlight.mailedLink(account.email)
  assert.match(mail.subject, /sign in/i)

  await page.goto(mail.links[0])
  await page.click('button.primary')
  await page.waitForURL(`https://${host}/**`)
  if ((await page.locator('#path').count()) === 0) await page.goto(`https://${host}/`)
  assert.equal(await page.textContent('h1'), 'Notes of ' + account.email)

  const seen = requests.at(-1)
  assert.deepEqual(Object.keys(seen.headers).filter((h) => h.startsWith('x-service-')).sort(), [...identity].sort())
  assert.equal(seen.headers['x-service-user'], account.accountId)
  assert.equal(seen.headers['x-service-email'], account.email)
  assert.equal(seen.headers['x-service-name'], account.name)
  assert.equal(seen.headers['x-service-app'], 'Notes')
  assert.equal(seen.headers['x-service-role'], 'owner')
  assert.equal(seen.socket.remoteAddress, '127.0.0.1', 'the connection says nothing about who it is')
  assert.ok(!(seen.headers.cookie ?? '').includes('porchlight'), 'our cookie stays with us')

  await t.test('a page deep inside the app opens directly now', async () => {
    await page.goto(`https://${host}/a/deep/page?with=query`)
    assert.equal(await page.textContent('#path'), '/a/deep/page?with=query')
  })
  await t.test('fetch without a session gets 401 JSON, not a redirect', async () => {
    const response = await porchlight.request(`https://${host}/`, { headers: { Accept: 'application/json' } })
    assert.equal(response.status, 401)
    assert.ok(response.headers['www-authenticate'])
    assert.ok(JSON.parse(response.body).error)
  })
  await t.test('the owner revokes: the same browser is out at once', async () => {
    await porchlight.cli('revoke', 'notes')
    const before = requests.length
    const response = await page.goto(`https://${host}/`)
    assert.equal(response.status(), 404)
    assert.equal(requests.length, before)
    assert.equal((await porchlight.get('/publish/notes')).status, 404)
  })
})

test('the link of `porchlight open` signs the owner in, once', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => res.end('role ' + req.headers['x-service-role']))
  const url = await porchlight.publish('notes', 'Notes', port)
  const browser = await startBrowser(t, porchlight)

  const link = await porchlight.cli('open', 'notes', '--print')
  assert.ok(link.startsWith(url + '/'))
  const page = await browser.newPage()
  await page.goto(link)
  assert.equal(await page.textContent('body'), 'role owner')
  assert.equal(page.url(), url + '/', 'the token is gone from the address')

  const other = await (await browser.newContext()).newPage()
  const response = await other.goto(link)
  assert.notEqual(await other.textContent('body'), 'role owner', 'a used link opens nothing')
  assert.ok(response.status() >= 400 || new URL(other.url()).host !== new URL(url).host)
})

test('an app that is published but not running says so, and comes back by itself', async (t) => {
  const porchlight = await startPorchlight(t)
  let up = true
  const server = await import('node:http').then((http) => http.createServer((_, res) => res.end('here again')))
  const port = await freePort() // nobody else gets it while the app does not run
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  const url = await porchlight.publish('notes', 'Notes', port)
  t.after(() => up && (server.closeAllConnections(), server.close()))
  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()
  await page.goto(await porchlight.cli('open', 'notes', '--print'))

  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  up = false
  const response = await page.goto(url)
  assert.equal(response.status(), 502)
  assert.match(await page.textContent('h1'), /isn.t answering/)

  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  up = true
  await page.waitForFunction(() => document.body.textContent.includes('here again'), null, { timeout: 60_000 })
})
