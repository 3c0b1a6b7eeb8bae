// Radicale (Debian's) as a published app: WebDAV methods and a stored entry.
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { answers, freePort, invite, startBrowser, startPorchlight, startProcess } from './porchlight.mjs'

const entry = [
  'BEGIN:VCALENDAR',
  'VERSION:2.0',
  'PRODID:-//Porchlight//Test//EN',
  'BEGIN:VEVENT',
  'UID:porch@example.com',
  'DTSTAMP:20261121T120000Z',
  'DTSTART:20261121T180000Z',
  'SUMMARY:Light the porch',
  'END:VEVENT',
  'END:VCALENDAR',
  '',
].join('\r\n')

test('Radicale stores a calendar entry through the proxy', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await freePort()
  const storage = path.join(porchlight.dir, 'radicale')
  const config = path.join(porchlight.dir, 'radicale.conf')
  await mkdir(storage)
  await writeFile(
    config,
    `[server]\nhosts = 127.0.0.1:${port}\n[auth]\ntype = none\n[rights]\ntype = authenticated\n[storage]\nfilesystem_folder = ${storage}\n[web]\ntype = internal\n`,
  )
  await startProcess(t, 'radicale', ['--config', config], {}, () => answers(port))
  const url = await porchlight.publish('calendar', 'Calendar', port)
  const browser = await startBrowser(t, porchlight)
  const page = await browser.newPage()
  await page.goto(await porchlight.cli('open', 'calendar', '--print'))

  const statuses = await page.evaluate(async (entry) => {
    const headers = { Authorization: 'Basic ' + btoa('maya:any') }
    const made = await fetch('/maya/porch/', { method: 'MKCALENDAR', headers })
    const put = await fetch('/maya/porch/light.ics', {
      method: 'PUT',
      headers: { ...headers, 'Content-Type': 'text/calendar' },
      body: entry,
    })
    const listed = await fetch('/maya/porch/', { method: 'PROPFIND', headers: { ...headers, Depth: '1' } })
    const got = await fetch('/maya/porch/light.ics', { headers })
    return { made: made.status, put: put.status, listed: [listed.status, await listed.text()], got: [got.status, await got.text()] }
  }, entry)
  assert.equal(statuses.made, 201)
  assert.equal(statuses.put, 201)
  assert.equal(statuses.listed[0], 207)
  assert.ok(statuses.listed[1].includes('/maya/porch/light.ics'))
  assert.equal(statuses.got[0], 200)
  assert.ok(statuses.got[1].includes('SUMMARY:Light the porch'))

  const folder = path.join(storage, 'collection-root', 'maya', 'porch')
  assert.ok((await readdir(folder)).includes('light.ics'))
  assert.ok((await readFile(path.join(folder, 'light.ics'), 'utf8')).includes('Light the porch'))
  assert.equal((await porchlight.json('apps'))[0].url, url)
})

// Weakness: Radicale believes whoever sends X-Remote-User. Attack: a member
// sends it, in every spelling, to read the owner's calendar. Checked: the header
// is Porchlight's alone, so a member reads their own calendar and no other.
test('Radicale knows its visitors by X-Remote-User, and a member reads only their own calendar', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await freePort()
  const storage = path.join(porchlight.dir, 'radicale')
  const config = path.join(porchlight.dir, 'radicale.conf')
  await mkdir(storage)
  await writeFile(
    config,
    `[server]\nhosts = 127.0.0.1:${port}\n[auth]\ntype = http_x_remote_user\n[rights]\ntype = owner_only\n[storage]\nfilesystem_folder = ${storage}\n`,
  )
  await startProcess(t, 'radicale', ['--config', config], {}, () => answers(port))
  await porchlight.publish('calendar', 'Calendar', port)
  const owner = (await porchlight.json('account')).email
  const browser = await startBrowser(t, porchlight)
  const owners = await browser.newPage()
  await owners.goto(await porchlight.cli('open', 'calendar', '--print'))
  const bobs = await invite(porchlight, browser, 'bob@example.com', 'Calendar')
  await bobs.waitForURL(/calendar\./)

  const dav = (page, method, url, { headers = {}, body } = {}) =>
    page.evaluate(
      async ([method, url, headers, body]) => {
        const response = await fetch(url, { method, headers, body })
        return [response.status, await response.text()]
      },
      [method, url, headers, body],
    )
  const fill = async (page, email, summary) => {
    assert.equal((await dav(page, 'MKCALENDAR', `/${email}/porch/`))[0], 201, email)
    const body = entry.replace('Light the porch', summary)
    assert.equal((await dav(page, 'PUT', `/${email}/porch/one.ics`, { headers: { 'Content-Type': 'text/calendar' }, body }))[0], 201, email)
  }
  assert.equal((await dav(owners, 'MKCALENDAR', `/${owner}/porch/`))[0], 403, 'without the option nobody is known')
  await porchlight.cli('options', 'calendar', '--identity-header', 'X-Remote-User', '--identity-value', 'email')
  await fill(owners, owner, 'The owner is away')
  await fill(bobs, 'bob@example.com', 'Bob is away')

  const own = await dav(bobs, 'GET', '/bob@example.com/porch/one.ics')
  assert.equal(own[0], 200)
  assert.match(own[1], /Bob is away/)
  const forged = Object.fromEntries(['X-Remote-User', 'X_Remote_User', 'x.remote.user', 'Remote-User', 'REMOTE_USER'].map((name) => [name, owner]))
  for (const headers of [{}, forged, { Authorization: 'Basic ' + btoa(owner + ':any') }]) {
    for (const [method, url] of [
      ['GET', `/${owner}/porch/one.ics`],
      ['PROPFIND', `/${owner}/porch/`],
      ['PROPFIND', `/${owner}/`],
      ['DELETE', `/${owner}/porch/one.ics`],
      ['PUT', `/${owner}/porch/two.ics`],
    ]) {
      const [status, text] = await dav(bobs, method, url, { headers: { ...headers, Depth: '1' }, body: method === 'PUT' ? entry : undefined })
      assert.equal(status, 403, `${method} ${url} as ${Object.keys(headers)}`)
      assert.ok(!text.includes('The owner is away'))
    }
  }
  const kept = await dav(owners, 'GET', `/${owner}/porch/one.ics`)
  assert.match(kept[1], /The owner is away/)
})
