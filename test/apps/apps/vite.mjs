// Vite as it is started by default. Where localhost is ::1 first, as Debian's
// hosts file has it, it listens on [::1] only. By its own name of the connected
// computer it answers no visitor until it gets localhost as Host.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'

export default {
  heading: 'Vite',
  quick: true,
  async run(stage) {
    await stage.begin({ packages: 'quick' })
    await stage.write('index.html', '<!doctype html><title>Vite</title><h1></h1><script type="module" src="/main.js"></script>')
    await stage.write('main.js', 'import text from "./text.js"\ndocument.querySelector("h1").textContent = text\n')
    await stage.write('text.js', 'export default "before"\n')
    await stage.start(await onIPv6(stage))
    await stage.opened()
    await stage.publish()
    await stage.knowsLocalhostAlone()

    const page = await stage.page()
    // A page hears of a change once Vite has greeted it at its socket.
    const greeted = new Promise((resolve) => page.on('websocket', (socket) => socket.on('framereceived', resolve)))
    await page.reload()
    await greeted
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'before')
    await stage.write('text.js', 'export default "after"\n')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'after')
    assert.equal(page.url(), stage.url + '/')
  },
}

// onIPv6 has an app that listens on localhost listen on [::1]: by Debian's hosts
// file where the test may lay it over this machine's, otherwise by Vite's flag.
async function onIPv6(stage) {
  const hosts = await readFile('/etc/hosts', 'utf8')
  if (/^::1\s+localhost\b/m.test(hosts)) return {}
  if (process.getuid() !== 0) return { change: (line) => line.replace('vite', 'vite --host ::1') }
  await stage.write('hosts', '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n')
  const lay = `mount --bind ${path.join(stage.dir, 'hosts')} /etc/hosts && exec "$@"`
  return { within: ['unshare', '--mount', 'bash', '-c', lay, 'bash'] }
}
