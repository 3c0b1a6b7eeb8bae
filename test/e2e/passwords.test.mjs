// App passwords, from the link at a computer's address to a program that uses one
// and is refused: made by a person in Chromium, used by curl.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'
import { invite, press, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const run = promisify(execFile)
const bob = 'bob@example.com'

test('an app password is made in a browser and used by a program', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'application/json')
    res.write(JSON.stringify(req.headers))
    if (req.url !== '/feed') res.end() // the feed stays open
  })
  const notes = await porchlight.publish('notes', 'Notes', port)
  const photos = await porchlight.publish('photos', 'Photos', port)
  const { url: root, email: owner } = await porchlight.json('account')
  const browser = await startBrowser(t, porchlight)
  const page = await invite(porchlight, browser, bob, 'Notes')

  // curl is told user and password by a file, as other users can read arguments.
  const config = path.join(porchlight.dir, 'curl')
  const remember = (user, password) => writeFile(config, `user = "${user}:${password}"\ncacert = "${path.join(porchlight.data, 'ca', 'root.pem')}"\n`, { mode: 0o600 })
  const resolve = ['--connect-to', `::127.0.0.1:${new URL(notes).port}`]
  const arrived = '\n%{http_code} %{http_version}'
  async function curl(url, ...args) {
    const { stdout } = await run('curl', ['-sS', '-K', config, ...resolve, '-w', arrived, ...args, url])
    const at = stdout.lastIndexOf('\n')
    const [status, version] = stdout.slice(at + 1).split(' ')
    return { status: Number(status), version, body: stdout.slice(0, at) }
  }

  await t.test('the invitation’s session is not enough', async () => {
    await page.goto(root)
    await page.click('text=App passwords')
    await page.waitForURL('**/signin?return=*')
    await page.fill('input[name=email]', bob)
    await page.click('button.primary')
    await page.goto((await porchlight.mailedLink(bob)).links[0])
    await page.click('button.primary')
    await page.waitForURL('**/account/passwords?computer=*')
  })

  // made presses the button of the form, and returns the address, the user and the password that are shown then.
  async function made() {
    await press(page, 'button.primary')
    return page.locator('code.whole').allTextContents()
  }

  await t.test('it is shown once', async () => {
    await page.fill('input[name=name]', 'reader')
    const [address, user, password] = await made()
    assert.equal(address, notes + '/')
    assert.equal(user, bob)
    await remember(user, password)
    await press(page, 'a.primary')
    assert.ok(!(await page.content()).includes(password))
    assert.equal(await page.getByText('reader').count(), 1)
  })

  for (const [flag, version] of [['--http1.1', '1.1'], ['--http2', '2']]) {
    await t.test(`it opens the app over HTTP/${version}, and no other`, async () => {
      const got = await curl(notes + '/', flag)
      assert.deepEqual([got.status, got.version], [200, version], got.body)
      const headers = JSON.parse(got.body)
      assert.equal(headers['x-service-email'], bob)
      assert.equal(headers['x-service-role'], 'member')
      assert.equal(headers.authorization, undefined, 'the app does not see it')
      assert.equal((await curl(photos + '/', flag)).status, 401)
    })
  }

  await t.test('alone, in a field of its own, it leaves Authorization to the app', async () => {
    const [, password] = /:(plp_\w+)"/.exec(await readFile(config, 'utf8'))
    const key = `X-Porchlight-Key: ${password}`
    const keyed = path.join(porchlight.dir, 'keyed')
    await writeFile(keyed, `header = "${key}"\ncacert = "${path.join(porchlight.data, 'ca', 'root.pem')}"\n`, { mode: 0o600 })
    const ask = async (...args) => (await run('curl', ['-sS', '-K', keyed, ...resolve, ...args, notes + '/'])).stdout
    for (const flag of ['--http1.1', '--http2']) {
      const got = JSON.parse(await ask(flag, '-H', 'Authorization: Bearer the-apps', '-H', 'Cookie: theirs=1'))
      assert.deepEqual([got['x-service-email'], got.authorization, got.cookie, got['x-porchlight-key']], [bob, 'Bearer the-apps', 'theirs=1', undefined])
    }
    const arrived = ['-o', '/dev/null', '-w', '%{http_code}']
    assert.equal(await ask(...arrived, '-H', key), '400')
    assert.equal(await ask(...arrived, '-H', 'Origin: https://evil.example'), '403')
    assert.doesNotMatch(await ask('-i', '-X', 'OPTIONS', '-H', 'Origin: https://evil.example', '-H', 'Access-Control-Request-Method: GET', '-H', 'Access-Control-Request-Headers: x-porchlight-key'), /allow-headers/i)
    // Python's requests, with a token of the app's in a session of its own.
    const python = `
import json, os, socket, sys, requests
address = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **rest: address("127.0.0.1", *more, **rest)
class Bearer(requests.auth.AuthBase):
    def __call__(self, request):
        request.headers["Authorization"] = "Bearer the-apps"
        return request
with requests.Session() as session:
    session.auth = Bearer()
    session.headers["X-Porchlight-Key"] = os.environ["KEY"]
    got = session.get(sys.argv[1], verify=sys.argv[2]).json()
print(got["x-service-email"], got["authorization"], "x-porchlight-key" in got)
`
    const { stdout } = await run('/usr/bin/python3', ['-c', python, notes + '/', path.join(porchlight.data, 'ca', 'root.pem')], { env: { ...process.env, KEY: password } })
    assert.equal(stdout, `${bob} Bearer the-apps False\n`)
  })

  await t.test('a browser’s request is held to the cookie’s rules', async () => {
    for (const header of ['Sec-Fetch-Site: cross-site', 'Origin: https://evil.example']) {
      const { status } = await curl(notes + '/', '-X', 'POST', '-H', header)
      assert.ok(status >= 400 && status < 500, `${header}: ${status}`)
    }
  })

  await t.test('who does not know it is asked for it, and a browser is not', async () => {
    await remember(bob, 'plp_' + 'a'.repeat(32))
    assert.equal((await curl(notes + '/')).status, 401)
    const { headers } = await porchlight.request(notes + '/', { headers: { Accept: '*/*' } })
    assert.match(headers['www-authenticate'] ?? '', /^Basic /)
    const own = await porchlight.request(notes + '/', { headers: { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors' } })
    assert.equal(own.status, 401)
    assert.match(own.headers['www-authenticate'], /^Bearer resource_metadata="[^"]*"$/)
  })

  await t.test('revoked, it opens nothing, and what was open closes', async () => {
    await page.fill('input[name=name]', 'laptop')
    const [, user, password] = await made()
    await remember(user, password)
    await press(page, 'a.primary')
    const feed = spawn('curl', ['-sSN', '-K', config, ...resolve, notes + '/feed'], { stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = once(feed, 'exit')
    t.after(() => feed.kill())
    await once(feed.stdout, 'data')
    const began = performance.now()
    const revoked = press(page, page.getByRole('button', { name: 'Revoke laptop for Notes' }))
    await ended
    t.diagnostic(`an open feed ended ${Math.round(performance.now() - began)} ms after the click`)
    assert.equal((await curl(notes + '/')).status, 401)
    await revoked
    assert.equal(await page.getByText('laptop').count(), 0)
    assert.equal(await page.getByText('reader').count(), 1)
  })

  await t.test('the owner makes their own at the command line, and ends anybody’s', async () => {
    const made = await porchlight.json('passwords', 'add', 'notes', '--name', 'backup')
    await remember(owner, made.password)
    assert.equal(JSON.parse((await curl(notes + '/')).body)['x-service-role'], 'owner')
    const list = await porchlight.json('passwords', 'list')
    assert.deepEqual(list.map((p) => [p.email, p.name]).sort(), [[bob, 'reader'], [owner, 'backup']])
    for (const p of list) await porchlight.cli('passwords', 'revoke', p.id)
    assert.equal((await curl(notes + '/')).status, 401)
    await page.reload()
    assert.equal(await page.getByText('reader').count(), 0)
  })

  await t.test('a member who is removed has none', async () => {
    await page.fill('input[name=name]', 'third')
    const [, user, password] = await made()
    await remember(user, password)
    assert.equal((await curl(notes + '/')).status, 200)
    await porchlight.cli('people', 'remove', bob)
    assert.equal((await curl(notes + '/')).status, 401)
    await invite(porchlight, browser, bob, 'Notes')
    assert.equal((await curl(notes + '/')).status, 401, 'invited again, it is still over')
    assert.deepEqual(await porchlight.json('passwords', 'list'), [])
  })
})
