// Weakness: web pages reach APIs on loopback, by requests a browser sends to any
// address (CSRF), or by a name of theirs that begins to mean 127.0.0.1 (DNS
// rebinding). Attack: a page in Chromium tries everything it can. Checked:
// nothing is readable, and nothing is stored.
import assert from 'node:assert/strict'
import test from 'node:test'
import { startBrowser, startPorchlight, startServer } from './porchlight.mjs'

const request = { name: 'evil', label: 'Evil', localPort: 80 }

// unharmed checks that no page has had an effect.
async function unharmed(porchlight) {
  assert.deepEqual(await porchlight.json('apps'), [])
  assert.equal((await porchlight.get('/status')).body.pendingApps, 0)
  assert.equal((await porchlight.get('/engine/info')).body.registrants, 0)
}

test('a page of another site forges requests to the loopback API', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'text/html')
    res.end('<title>evil</title>')
  })
  const browser = await startBrowser(t, porchlight)
  for (const origin of [`http://evil.localhost:${port}`, `http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    const page = await browser.newPage()
    await page.goto(origin + '/')
    const readable = await page.evaluate(
      async ({ api, request }) => {
        const json = JSON.stringify(request)
        const read = []
        const attempt = async (what, start) => {
          try {
            const outcome = await start()
            if (outcome !== undefined) read.push(`${what}: ${outcome}`)
          } catch {} // refused by the browser: nothing was readable
        }
        const text = (options, path = '/publish') => async () => {
          const response = await fetch(api + path, options)
          return response.type === 'opaque' ? undefined : response.text()
        }
        for (const kind of ['text/plain', 'application/x-www-form-urlencoded', 'application/json', 'multipart/form-data; boundary=x']) {
          const options = { method: 'POST', body: json, headers: { 'Content-Type': kind } }
          await attempt('cors ' + kind, text(options))
          await attempt('no-cors ' + kind, text({ ...options, mode: 'no-cors' }))
          await attempt('with cookies ' + kind, text({ ...options, credentials: 'include' }))
        }
        await attempt('blob without a type', text({ method: 'POST', body: new Blob([json]), mode: 'no-cors' }))
        await attempt('register', text({ method: 'POST', body: '{"appId":"evil","pid":1}', mode: 'no-cors' }, '/engine/register'))
        await attempt('status', text({}, '/status'))
        await attempt('status, no-cors', text({ mode: 'no-cors' }, '/status'))
        await attempt('delete', text({ method: 'DELETE' }, '/publish/evil'))
        await attempt('forged header', text({ headers: { 'x-engine-capability': 'x' } }, '/people'))
        await attempt('owner', text({ method: 'POST', mode: 'no-cors' }, '/owner/apps/evil/approve'))
        navigator.sendBeacon(api + '/publish', json)
        navigator.sendBeacon(api + '/publish', new Blob([json], { type: 'text/plain' }))
        const settled = (element, on = ['load', 'error']) => new Promise((resolve) => on.forEach((name) => element.addEventListener(name, () => resolve(name))))
        for (const tag of ['img', 'script', 'link', 'video']) {
          const element = document.createElement(tag)
          if (tag === 'link') element.rel = 'stylesheet'
          const done = settled(element, ['load', 'loadeddata', 'error'])
          element[tag === 'link' ? 'href' : 'src'] = api + '/status'
          document.body.append(element)
          if ((await done) !== 'error') read.push(tag)
        }
        // Forms, the old way: text/plain that is nearly JSON, into a frame.
        for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
          const frame = document.createElement('iframe')
          frame.name = 'into'
          document.body.append(frame)
          const form = document.createElement('form')
          Object.assign(form, { action: api + '/publish', method: 'POST', enctype, target: 'into' })
          const field = document.createElement('input')
          field.name = json.slice(0, -1) + ',"x":"'
          field.value = '"}'
          form.append(field)
          document.body.append(form)
          const done = settled(frame)
          form.submit()
          await done
          frame.remove()
          form.remove()
        }
        await attempt('websocket', () => new Promise((resolve, reject) => {
          const socket = new WebSocket(api.replace('http', 'ws') + '/status')
          socket.onopen = () => resolve('open')
          socket.onerror = () => reject(new Error('refused'))
        }))
        await attempt('event source', () => new Promise((resolve, reject) => {
          const source = new EventSource(api + '/owner/events')
          source.onopen = () => resolve('open')
          source.onerror = () => (source.close(), reject(new Error('refused')))
        }))
        return read
      },
      { api: `http://${porchlight.api}`, request },
    )
    assert.deepEqual(readable, [], origin)
    await unharmed(porchlight)
    await page.close()
  }
})

test('a name of another site begins to mean 127.0.0.1', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = new URL(`http://${porchlight.api}`).port
  const browser = await startBrowser(t, porchlight, [
    '--host-resolver-rules=MAP *.evil.example 127.0.0.1',
    // Chromium has a defence of its own by now, other browsers do not.
    '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights',
  ])
  const page = await browser.newPage()
  const origin = `http://rebound.evil.example:${port}`
  // The page itself came from the attacker's server, before the name moved.
  await page.route(origin + '/', (route) => route.fulfill({ contentType: 'text/html', body: '<title>evil</title>' }), { times: 1 })
  await page.goto(origin + '/')
  const answers = await page.evaluate(async (request) => {
    const json = { method: 'POST', body: JSON.stringify(request), headers: { 'Content-Type': 'application/json' } }
    const out = []
    for (const [path, options] of [
      ['/publish', json], ['/publish/evil', {}], ['/status', {}], ['/engine/info', {}], ['/engine/register', { ...json, body: '{"appId":"evil","pid":1}' }],
      ['/people', { headers: { 'x-engine-capability': 'x' } }], ['/owner/state', {}], ['/', {}],
    ]) {
      const response = await fetch(path, options) // same origin to the browser
      out.push([path, response.status, await response.text()])
    }
    const socket = await new Promise((resolve) => {
      const s = new WebSocket(`ws://${location.host}/status`)
      s.onopen = () => resolve('open')
      s.onerror = () => resolve('refused')
    })
    return { out, socket }
  }, request)
  for (const [path, status, body] of answers.out) {
    assert.ok(status >= 400, `${path} answered ${status}`)
    // What owners read goes with its key, for other languages.
    assert.deepEqual(Object.keys(JSON.parse(body)), path.startsWith('/owner/') ? ['error', 'words'] : ['error'], path)
  }
  assert.equal(answers.socket, 'refused')
  await unharmed(porchlight)
})
