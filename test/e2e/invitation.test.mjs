// An invitation from the owner's command line to the invited person's browser:
// a connected computer, a control plane of its own, a real mail server between,
// and two browsers that have nothing in common.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import readline from 'node:readline'
import test from 'node:test'
import { promisify } from 'node:util'
import { startControl } from './control.mjs'
import { links, startMail } from './mail.mjs'
import { press, programs, startBrowser, startProcess, startServer } from './porchlight.mjs'

const run = promisify(execFile)
const program = `${programs}/porchlight`
const owner = 'maya@example.com'
const guest = 'ben@example.net'

// startComputer runs an agent that is not connected yet.
async function startComputer(t, control) {
  const data = path.join(control.dir, 'computer')
  const env = { ...process.env, XDG_CONFIG_HOME: path.join(control.dir, 'config'), PORCHLIGHT_DATA: data, PORCHLIGHT_API: '' }
  const computer = {
    data,
    env,
    async cli(...args) {
      return (await run(program, args, { env })).stdout.trim()
    },
    async json(...args) {
      return JSON.parse(await computer.cli(...args, '--json'))
    },
    // publish asks for an address as an app does, and approves it.
    async publish(name, label, port) {
      await computer.cli('publish', name, '--label', label, '--port', String(port))
      await computer.cli('approve', name)
      return (await computer.json('apps')).find((a) => a.name === name)
    },
  }
  const root = path.join(control.data, 'ca', 'root.pem')
  await startProcess(t, program, ['agent', '--api', '127.0.0.1:0', '--control', control.authUrl, '--ca', root], { env }, async () => {
    try {
      await computer.json('status')
      return true
    } catch {
      return false
    }
  })
  return computer
}

// connect goes through the device flow: the code on the computer, the rest in the
// owner's browser.
async function connect(computer, control, mail, page) {
  const root = path.join(control.data, 'ca', 'root.pem')
  const child = spawn(program, ['connect', control.authUrl, '--name', 'maya', '--ca', root], {
    env: computer.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  child.stdout.on('data', (chunk) => (said += chunk))
  child.stderr.on('data', (chunk) => (said += chunk))
  const done = once(child, 'exit')
  const lines = readline.createInterface({ input: child.stdout })
  let address
  for await (const line of lines) {
    address = line.match(/https:\/\/\S+/)?.[0]
    if (address) break
  }
  assert.ok(address, said)
  await page.goto(address)
  await page.fill('input[name=email]', owner)
  await page.click('button.primary')
  const [link] = links(await mail.next(owner, /sign in/i)).text
  await page.goto(link)
  await press(page, 'button.primary') // sign in
  if (!(await page.locator('input[name=name]').count())) await page.click('button.primary') // the code
  await page.click('button[name=decision][value=allow]')
  const [code] = await done
  assert.equal(code, 0, said)
}

test('an invitation by mail, accepted in a fresh browser, opens what was granted and nothing else', async (t) => {
  const mail = await startMail(t)
  const control = await startControl(t, mail.serve)
  await control.cli('account', 'add', owner)
  const computer = await startComputer(t, control)
  const ownersBrowser = await startBrowser(t, control)
  await connect(computer, control, mail, await ownersBrowser.newPage())

  const requests = { notes: [], photos: [] }
  const app = (name) =>
    startServer(t, (req, res) => {
      if (req.headers['user-agent'] !== 'Porchlight-probe') requests[name].push(req)
      res.setHeader('Content-Type', 'text/html; charset=utf-8')
      res.end(`<title>${name}</title><h1>${name} of ${req.headers['x-service-email']} as ${req.headers['x-service-role']}</h1>`)
    })
  const notes = await computer.publish('notes', 'Notes', await app('notes'))
  const photos = await computer.publish('photos', 'Photos & more', await app('photos'))

  await computer.cli('people', 'invite', guest, '--app', 'Notes')
  const invitation = await mail.next(guest, /./)

  await t.test('the mail', () => {
    assert.deepEqual(invitation.rcpt, [guest])
    assert.equal(invitation.replyTo, owner, 'an answer goes to the inviter')
    assert.notEqual(invitation.from, owner, 'the service does not pretend to be the inviter')
    const { text, html } = links(invitation)
    assert.equal(text.length, 1)
    assert.deepEqual(html, text, 'both parts lead to the same place')
    for (const part of [invitation.subject, invitation.text, invitation.html]) {
      assert.ok(part.includes(owner) && part.includes('Notes'), part)
      assert.ok(!part.includes('Photos'), 'it names nothing that was not granted')
    }
  })

  const [link] = links(invitation).text
  await t.test('a mail scanner opens it and changes nothing', async () => {
    for (const method of ['GET', 'HEAD']) {
      const looked = await control.request(link, { method })
      assert.equal(looked.status, 200)
      assert.ok(!(looked.headers['set-cookie'] ?? []).some((c) => c.includes('porchlight')))
    }
    const { members } = await computer.json('people')
    assert.equal(members.find((p) => p.email === guest).status, 'pending')
  })

  // A profile of its own, which has seen nothing of the owner's. The computer's
  // certificates come from an authority of its own here, which no guest knows.
  const browser = await startBrowser(t, { dir: control.dir, data: control.data })
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  const posts = []
  page.on('request', (r) => r.method() === 'POST' && posts.push(r.url()))

  await t.test('one click, one POST, and the app', async () => {
    await page.goto(link)
    assert.ok((await page.textContent('main')).includes(guest))
    assert.deepEqual(posts, [], 'opening the page posts nothing')
    await page.click('button.primary')
    await page.waitForURL(notes.url + '/**')
    await page.waitForSelector('h1')
    assert.deepEqual(posts.map((u) => new URL(u).pathname), ['/invitation'])
    assert.equal(await page.textContent('h1'), `notes of ${guest} as member`)
    assert.equal(requests.notes.at(-1).headers['x-service-app'], 'Notes')
    const { members } = await computer.json('people')
    const person = members.find((p) => p.email === guest)
    assert.equal(person.status, 'active')
    assert.deepEqual(person.apps, ['Notes'])
  })

  await t.test('nothing else opens', async () => {
    const response = await page.goto(photos.url)
    assert.equal(response.status(), 403)
    assert.equal(new URL(page.url()).host, new URL(control.authUrl).host, 'the control plane says so, not the computer')
    assert.ok(!(await page.textContent('main')).includes('Photos'), 'nor does it say what is there')
    assert.equal(requests.photos.length, 0)
  })

  await t.test('the same link opens nothing for somebody else', async () => {
    const stranger = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
    const response = await stranger.goto(link)
    assert.equal(response.status(), 404)
    assert.equal(await stranger.locator('form[action="/invitation"]').count(), 0)
  })

  await t.test('taken away, the open page is of no use any more', async () => {
    await computer.cli('people', 'remove', guest)
    const before = requests.notes.length
    const response = await page.goto(notes.url)
    assert.equal(response.status(), 403)
    assert.notEqual(await page.textContent('h1'), `notes of ${guest} as member`)
    assert.equal(requests.notes.length, before)
  })
})
