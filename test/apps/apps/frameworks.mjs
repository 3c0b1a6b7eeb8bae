// Small apps of frameworks that Debian, npm and Go bring: each shows the visitor who
// they are, at the address that they came to.
import assert from 'node:assert/strict'
import { command } from '../stage.mjs'

// hello is an app whose first page greets the visitor.
function hello({ heading, packages, quoted = '' }) {
  return {
    heading,
    async run(stage) {
      await stage.begin({ packages })
      await stage.start()
      await stage.publish()
      await stage.healthy('answers')
      await stage.options()
      await stage.healthy('answers')
      const page = await stage.page()
      assert.equal(await page.textContent('body'), `${quoted}Hello ${stage.computer.account.email}${quoted}`)
      assert.equal(page.url(), stage.url + '/')
    },
  }
}

// Django is signed in to at its administration, whose forms compare Origin with the
// address that Django thinks it has.
const django = {
  heading: 'Django',
  async run(stage) {
    await stage.begin()
    await stage.start()
    await stage.opened()
    await stage.publish()
    await stage.knowsLocalhostAlone()

    const env = { ...process.env, DJANGO_SUPERUSER_PASSWORD: 'porch' }
    const made = ['/usr/bin/python3', 'manage.py', 'createsuperuser', '--noinput', '--username=maya', '--email=maya@example.net']
    await command(made, { cwd: stage.dir, env })
    const page = await stage.page('/admin/')
    await page.fill('#id_username', 'maya')
    await page.fill('#id_password', 'porch')
    await page.click('[type=submit]')
    await page.waitForURL(stage.url + '/admin/')
    assert.match(await page.textContent('body'), /Site administration/)
    await page.goto(stage.url + '/admin')
    assert.equal(page.url(), stage.url + '/admin/')
  },
}

// A socket has no port: the address is asked for with one where nothing listens.
const socket = {
  heading: 'An app on a unix socket',
  async run(stage) {
    await stage.begin()
    await stage.start({ socket: 'app.sock' })
    await stage.publish()
    await stage.healthy('nothing')
    await stage.options()
    await stage.healthy('answers')
    const page = await stage.page()
    assert.equal(await page.textContent('body'), `"Hello ${stage.computer.account.email}"`)
  },
}

export default [
  hello({ heading: 'Express', packages: '.' }),
  hello({ heading: 'Go net/http' }),
  hello({ heading: 'Flask' }),
  hello({ heading: 'FastAPI', quoted: '"' }),
  hello({ heading: 'PHP' }),
  django,
  socket,
]
