// Radicale (Debian's) as a published app: WebDAV methods and a stored entry.
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test from 'node:test'
import { answers, freePort, startBrowser, startPorchlight, startProcess } from './porchlight.mjs'

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
