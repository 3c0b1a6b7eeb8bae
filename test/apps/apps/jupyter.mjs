// A Jupyter notebook server: a page starts a kernel and has it reckon, over a
// WebSocket whose Origin the server compares with its own address.
import assert from 'node:assert/strict'
import { freePort } from '../../e2e/porchlight.mjs'

const notebook = {
  heading: 'Jupyter',
  async run(stage) {
    await stage.begin()
    await stage.start({ env: { JUPYTER_TOKEN: 'porch', HOME: stage.dir }, change: asRoot })
    await stage.publish()
    // Its first page is a redirect, which it gives everybody; the page after it is refused.
    await stage.told('refuses')
    const page = await stage.page()
    const refused = await page.goto(stage.url + '/tree?token=porch')
    assert.equal(refused.status(), 403)
    await stage.options()
    await stage.healthy('answers')

    await page.goto(stage.url + '/tree?token=porch')
    assert.equal(page.url(), stage.url + '/tree')
    assert.equal(await page.evaluate(reckon), '42')
  },
}

// hub gives everybody a server of their own, which the page of the hub starts and stops.
const hub = {
  heading: 'JupyterHub',
  async run(stage) {
    await stage.begin()
    const [inner, api] = [await freePort(), await freePort()]
    const tried = ` --JupyterHub.hub_port=${inner} --ConfigurableHTTPProxy.api_url=http://127.0.0.1:${api} --JupyterHub.authenticator_class=dummy --JupyterHub.spawner_class=simple`
    const change = (line) => line + tried + (process.getuid() === 0 ? ' --Spawner.args=--allow-root' : '')
    await stage.start({ change, env: { NODE_PATH: '/usr/share/nodejs' } })
    await stage.publish()
    await stage.healthy('answers')
    const page = await stage.page('/hub/login')
    await page.fill('#username_input', 'porch')
    await page.fill('#password_input', 'porch')
    await page.click('#login_submit')
    await page.waitForURL(/\/hub\/spawn/)
    const own = (method) => page.evaluate(async (method) => (await fetch('/hub/api/users/porch' + (method === 'GET' ? '' : '/server'), { method })).status, method)
    assert.equal(await own('GET'), 403)
    await stage.options()
    await stage.healthy('answers')
    await page.goto(stage.url + '/hub/spawn')
    await page.waitForURL(/\/user\/porch\/tree/, { timeout: 60_000 })
    assert.equal(await page.evaluate(reckon, '/user/porch/'), '42')
    await page.goto(stage.url + '/hub/home')
    assert.equal(await own('DELETE'), 204)
  },
}

// asRoot lets Jupyter run as root, where the tests do.
const asRoot = (line) => (process.getuid() === 0 ? line + ' --allow-root' : line)

// reckon is carried out by the page.
async function reckon(base = '/') {
  const xsrf = document.cookie.match(/_xsrf=([^;]+)/)?.[1] ?? ''
  const made = await fetch(base + 'api/kernels', { method: 'POST', headers: { 'X-XSRFToken': xsrf }, body: '{}' })
  const { id } = await made.json()
  const socket = new WebSocket(`wss://${location.host}${base}api/kernels/${id}/channels`)
  return new Promise((resolve, reject) => {
    const header = { msg_id: 'one', msg_type: 'execute_request', username: '', session: 'porch', date: '', version: '5.3' }
    const content = { code: '6 * 7', silent: false, store_history: false, allow_stdin: false }
    socket.onopen = () => socket.send(JSON.stringify({ header, parent_header: {}, metadata: {}, content, channel: 'shell', buffers: [] }))
    socket.onerror = () => reject(new Error('the WebSocket failed'))
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data)
      if (message.msg_type === 'execute_result') resolve(message.content.data['text/plain'])
    }
  })
}

export default [notebook, hub]
