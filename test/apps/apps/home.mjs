// Programs that people have at home, which compare what they are sent with localhost:
// one at its first page, one at the calls of its page, one at its WebSocket.
import assert from 'node:assert/strict'

// The page of a torrent client comes to everybody; what it calls is refused, 421, to who
// names another host. Porchlight says so once a visitor met that.
const transmission = {
  heading: 'Transmission',
  async run(stage) {
    await stage.begin()
    await stage.start()
    await stage.publish()
    await stage.healthy('answers')
    const page = await stage.page('/transmission/web/')
    const call = () =>
      page.evaluate(async () => {
        const ask = (id) => fetch('/transmission/rpc', { method: 'POST', headers: { 'X-Transmission-Session-Id': id }, body: '{"method":"session-get"}' })
        const first = await ask('')
        const second = await ask(first.headers.get('X-Transmission-Session-Id') ?? '')
        return [first.status, second.status, await second.text()]
      })
    assert.equal((await call())[0], 421)
    await stage.told('answers')
    await stage.options()
    await stage.healthy('answers')
    const [first, second, text] = await call()
    assert.deepEqual([first, second], [409, 200])
    assert.match(text, /download-dir/)
  },
}

const syncthing = {
  heading: 'Syncthing',
  async run(stage) {
    await stage.begin()
    await stage.start({ env: { STNODEFAULTFOLDER: '1' } })
    await stage.publish()
    await stage.knowsLocalhostAlone()
    const page = await stage.page()
    const mine = await page.evaluate(async () => {
      const [, name, token] = document.cookie.match(/(CSRF-Token-\w+)=([^;]+)/)
      return (await fetch('/rest/system/status', { headers: { ['X-' + name]: token } })).json()
    })
    assert.match(mine.myID, /^\w{7}-/)
  },
}

// Cockpit's page comes to everybody, and its WebSocket to its own address alone.
const cockpit = {
  heading: 'Cockpit',
  async run(stage) {
    await stage.begin()
    await stage.start()
    await stage.publish()
    await stage.healthy('answers')
    const page = await stage.page()
    assert.equal(await page.evaluate(greet), 'refused')
    await stage.told('answers')
    await stage.options()
    await stage.healthy('answers')
    assert.match(await page.evaluate(greet), /"command":\s*"init"/)
  },
}

// greet is carried out by the page: what the console says first.
function greet() {
  const socket = new WebSocket(`wss://${location.host}/cockpit/socket`, 'cockpit1')
  return new Promise((resolve) => {
    socket.onerror = () => resolve('refused')
    socket.onmessage = ({ data }) => resolve(data)
  })
}

export default [transmission, syncthing, cockpit]
