// What Chromium and Firefox themselves ask when an app takes certificates, on a screen of its
// own: chosen by the keyboard as a person does, cancelled, and not asked at all where nothing
// fits. It goes by browsers' own windows, so it is no part of `make test`:
//
//   node --test dialogs.mjs            SHOTS=DIR keeps pictures of them
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import readline from 'node:readline'
import test from 'node:test'
import { promisify } from 'node:util'
import { startPorchlight, startServer } from './porchlight.mjs'

const run = promisify(execFile)
const patience = 60_000

test('browsers ask for a certificate where it opens something, and only there', async (t) => {
  const porchlight = await startPorchlight(t)
  const port = await startServer(t, (req, res) => {
    res.setHeader('Content-Type', 'text/html')
    res.end(`<title>Opened by ${req.headers['x-service-email']}</title>`)
  })
  const notes = await porchlight.publish('notes', 'Notes', port)
  const photos = await porchlight.publish('photos', 'Photos', port)
  const other = await porchlight.publish('other', 'Other', port)
  const file = path.join(porchlight.dir, 'phone.p12')
  const { code } = await porchlight.json('devices', 'add', 'phone', '--app', 'notes', '--app', 'photos', '--out', file)
  const foreign = await foreigner(porchlight.dir)
  const screen = await startScreen(t)

  for (const [name, start] of [['Chromium', chromium], ['Firefox', firefox]]) {
    await t.test(name, async (t) => {
      const browser = await start(t, porchlight, screen, [{ file, code }, foreign])
      await t.test('chosen, the app opens', async () => {
        await browser.open(notes)
        await screen.dialog()
        await screen.shot(`${name}-asks`)
        await browser.choose()
        await screen.shows(/Opened by /)
      })
      await t.test('cancelled, a person signs in', async () => {
        await browser.open(photos)
        await screen.dialog()
        await browser.cancel()
        await screen.shows(/^Sign in/)
        await screen.shot(`${name}-cancelled`)
      })
      await t.test('an app without devices asks for none', async () => {
        await browser.open(other)
        await screen.shows(/^Sign in/)
      })
    })
    await t.test(`${name} that has another authority's alone`, async (t) => {
      const browser = await start(t, porchlight, screen, [foreign])
      await browser.open(notes)
      await screen.shows(/^Sign in/)
      await screen.shot(`${name}-foreign`)
    })
  }
})

// foreigner is a certificate of another authority.
async function foreigner(dir) {
  const [key, cert, file] = ['foreign.key', 'foreign.pem', 'foreign.p12'].map((name) => path.join(dir, name))
  await run('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=Somebody else', '-addext', 'extendedKeyUsage=clientAuth'])
  await run('openssl', ['pkcs12', '-export', '-in', cert, '-inkey', key, '-out', file, '-passout', 'pass:foreign', '-name', 'Somebody else'])
  return { file, code: 'foreign' }
}

// startScreen is a screen with a window manager, by which windows have the keyboard.
async function startScreen(t) {
  const server = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x900x24', '-nolisten', 'tcp'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const ended = once(server, 'exit')
  t.after(async () => {
    server.kill()
    await ended
  })
  const [number] = await once(readline.createInterface({ input: server.stdio[3] }), 'line')
  const env = { ...process.env, DISPLAY: ':' + number.trim(), WAYLAND_DISPLAY: '' }
  const manager = spawn('openbox', { env, stdio: 'ignore' })
  t.after(() => manager.kill())
  const tool = (...args) => run('xdotool', args, { env }).then(({ stdout }) => stdout.trim(), () => '')

  const screen = {
    env,
    tool,
    // titles are those of all windows.
    async titles() {
      const ids = (await tool('search', '--onlyvisible', '--name', '.')).split('\n').filter(Boolean)
      return Promise.all(ids.map((id) => tool('getwindowname', id)))
    },
    async until(what, is) {
      for (const deadline = Date.now() + patience; Date.now() < deadline; ) {
        if (await is()) return
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      await screen.shot('failed')
      assert.fail(`${what}: there is ${JSON.stringify(await screen.titles())}`)
    },
    shows: (pattern) => screen.until(`a page ${pattern}`, async () => (await screen.titles()).some((title) => pattern.test(title))),
    // dialog waits for one: the page behind it is grey.
    dialog: () =>
      screen.until('its dialog', async () => {
        const { stdout } = await run('import', ['-window', 'root', '-crop', '1x1+100+800', '-depth', '8', 'txt:-'], { env })
        const [r, g, b] = stdout.match(/#(\w\w)(\w\w)(\w\w)/).slice(1).map((one) => parseInt(one, 16))
        return Math.max(r, g, b) - Math.min(r, g, b) < 16 && r > 64 && r < 192
      }),
    async shot(name) {
      const dir = process.env.SHOTS
      if (!dir) return
      await mkdir(dir, { recursive: true })
      await run('import', ['-window', 'root', path.join(dir, name + '.png')], { env })
    },
  }
  return screen
}

// home is one of a person who trusts this computer and has certificates.
async function home(porchlight, store, has) {
  await mkdir(store, { recursive: true })
  await run('certutil', ['-N', '--empty-password', '-d', 'sql:' + store])
  await run('certutil', ['-A', '-d', 'sql:' + store, '-n', 'porchlight', '-t', 'C,,', '-i', path.join(porchlight.data, 'ca', 'root.pem')])
  for (const one of has) await run('pk12util', ['-i', one.file, '-W', one.code, '-d', 'sql:' + store, '-K', ''])
}

let homes = 0

async function chromium(t, porchlight, screen, has) {
  const dir = path.join(porchlight.dir, `person-${++homes}`)
  await home(porchlight, path.join(dir, '.pki', 'nssdb'), has)
  const start = (address) =>
    spawn('/usr/bin/chromium', ['--no-sandbox', '--disable-gpu', '--no-first-run', '--password-store=basic', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--new-window', address], {
      env: { ...screen.env, HOME: dir, XDG_CONFIG_HOME: path.join(dir, '.config') },
      stdio: 'ignore',
    })
  return browser(t, screen, start)
}

async function firefox(t, porchlight, screen, has) {
  const dir = path.join(porchlight.dir, `person-${++homes}`)
  const profile = path.join(dir, 'profile')
  await home(porchlight, profile, has)
  const prefs = {
    'security.default_personal_cert': 'Ask Every Time',
    'browser.shell.checkDefaultBrowser': false,
    'browser.aboutwelcome.enabled': false,
    'browser.sessionstore.resume_from_crash': false,
    'datareporting.policy.dataSubmissionEnabled': false,
    'termsofuse.bypassNotification': true,
  }
  await writeFile(path.join(profile, 'user.js'), Object.entries(prefs).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''))
  const start = (address) => spawn('firefox-esr', ['--no-remote', '--profile', profile, address], { env: { ...screen.env, HOME: dir }, stdio: 'ignore' })
  return browser(t, screen, start)
}

// browser is one that is started anew for each address, so that nothing is remembered.
function browser(t, screen, start) {
  let child
  const one = {
    async open(address) {
      await one.stop()
      child = start(address)
    },
    async stop() {
      if (!child || child.exitCode !== null) return
      const ended = once(child, 'exit')
      child.kill()
      await ended
    },
    choose: () => screen.tool('key', 'Return'),
    cancel: () => screen.tool('key', 'Escape'),
  }
  t.after(() => one.stop())
  return one
}
