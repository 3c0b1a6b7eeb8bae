// An app on one of the two computers, as its recipe says: started, published,
// approved, given its options; and what the test does with it then.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../e2e/porchlight.mjs'
import { domain } from './house.mjs'
import { recipe, words } from './recipes.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))

export class Stage {
  constructor(t, computer, heading) {
    this.t = t
    this.computer = computer
    this.recipe = recipe(heading)
    this.password = ''
    this.given = [] // the options of the recipe, once the app has them
    this.suggested = undefined // those that the computer said would help
  }

  // begin makes the app's directory, with the recipe's files in it. packages is the
  // directory here whose npm packages the app finds above its own.
  async begin({ packages } = {}) {
    const parent = packages ? path.join(here, packages, 'scratch') : os.tmpdir()
    await mkdir(parent, { recursive: true })
    this.dir = await mkdtemp(path.join(parent, 'porchlight-app-'))
    this.t.after(() => rm(this.dir, { recursive: true, force: true, maxRetries: 10 }))
    const [, name, port] = this.recipe.publish[0].match(/^porchlight publish (\S+) .*--port (\d+)/)
    this.name = name
    this.written = port
    this.port = await freePort()
    for (const [file, text] of Object.entries(this.recipe.files)) await this.write(file, text)
  }

  async write(file, text) {
    await mkdir(path.dirname(path.join(this.dir, file)), { recursive: true })
    await writeFile(path.join(this.dir, file), this.here(text))
  }

  get host() {
    return `${this.name}.${this.computer.account.host}`
  }

  get url() {
    return `https://${this.host}`
  }

  // here is a text of the recipe with the values of this run for those of the
  // document. Python is Debian's, which has its packages.
  here(text) {
    return text
      .replaceAll(/^python3 /gm, '/usr/bin/python3 ')
      .replaceAll(new RegExp(`\\b${this.written}\\b`, 'g'), String(this.port))
      .replaceAll(`.maya.${domain}`, `.${this.computer.account.host}`)
      .replaceAll(`maya@${domain}`, this.computer.account.email)
      .replaceAll(`maya%40${domain}`, encodeURIComponent(this.computer.account.email))
      .replaceAll('PASSWORD', this.password)
      .replaceAll('/home/maya/app', this.dir)
  }

  // start runs the recipe's commands and waits until the app listens. within goes
  // before them, and change changes them. user is whom a service runs as that will
  // not run as root; socket is where the app listens instead of its port.
  async start({ within = [], change = (line) => line, env = {}, user, socket } = {}) {
    if (user && process.getuid() === 0) {
      await command(['chown', '-R', `${user}:`, this.dir], {})
      within = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', ...within]
    }
    const script = this.recipe.start.map((line) => change(this.here(line)))
    script.push('exec ' + script.pop())
    const launch = [...within, 'bash', '-euc', script.join('\n')]
    await this.run(launch, { ...process.env, PATH: process.env.PATH + ':/usr/sbin', ...env }, () => (socket ? answers({ path: path.join(this.dir, socket) }) : listens(this.port)))
  }

  // opened is what developers do first: they open the app on their own computer, and
  // again where it listens before it answers.
  async opened() {
    for (const deadline = Date.now() + 120_000; Date.now() < deadline; ) {
      for (const host of ['127.0.0.1', '[::1]']) {
        const response = await fetch(`http://${host}:${this.port}/`).catch(() => undefined)
        if (response?.ok) return
      }
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error(`${this.name} does not open on its own computer`)
  }

  // run starts a program, with whatever it starts in a group of its own, and ends
  // all of them with the test.
  async run([command, ...args], env, ready) {
    const child = spawn(command, args, { cwd: this.dir, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stdout.on('data', (chunk) => (said += chunk))
    child.stderr.on('data', (chunk) => (said += chunk))
    const ended = once(child, 'close')
    this.t.after(async () => {
      await end(child.pid)
      await ended
    })
    const deadline = Date.now() + 120_000
    while (!(await ready())) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${command} ${args.join(' ')} did not come up:\n${said}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  // publish asks for the address and says yes.
  async publish() {
    for (const line of this.recipe.publish) {
      const said = await this.porchlight(line)
      const password = said.match(/\bplp_\w+/)
      if (password) this.password = password[0]
    }
    this.t.after(() => this.computer.cli('revoke', this.name))
  }

  porchlight(line) {
    return this.computer.cli(...words(this.here(line)))
  }

  async app() {
    return (await this.computer.json('apps')).find((a) => a.name === this.name)
  }

  // healthy waits until the computer says the app's state, and that no option would
  // help.
  async healthy(state) {
    await this.asked(state, false)
  }

  // told waits until the computer says the app's state and options that would help,
  // and keeps those.
  async told(state) {
    this.suggested = (await this.asked(state, true)).healthOption
  }

  // An app that took too long for an answer on a busy machine is asked again by doctor,
  // a minute after it was asked.
  async asked(state, helped) {
    const deadline = Date.now() + 180_000
    for (;;) {
      const app = await this.app()
      if (app.health === state && helped === !!app.healthOption) return app
      if (app.health === 'silent') await this.computer.cli('doctor').catch(() => {}) // it fails where something is wrong
      if (Date.now() > deadline) throw new Error(`${this.name} is said to be ${JSON.stringify([app.health, app.healthDetail, app.healthOption])}, not ${state}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  // options gives the app the options of the recipe. They are those that the owner
  // was told of, if the computer could know of any.
  async options() {
    const before = await this.computer.json('options', this.name)
    for (const line of this.recipe.options) {
      await this.porchlight(line)
      this.given.push(...words(line).slice(2))
    }
    const now = await this.computer.json('options', this.name)
    if (!this.suggested) return
    const changed = Object.entries(now).filter(([name, value]) => value !== before[name])
    assert.deepEqual(this.suggested, Object.fromEntries(changed), 'the option that was named is the recipe’s')
  }

  // knowsLocalhostAlone goes for an app that refuses to be asked by the connected
  // computer's name, until it has its options.
  async knowsLocalhostAlone() {
    if (this.computer.name === 'connected') await this.told('refuses')
    else await this.healthy('answers')
    await this.options()
    await this.healthy('answers')
  }

  // elsewhere runs a line of the recipe as somebody on another computer does.
  async elsewhere(line, dir, env = {}) {
    return command(['bash', '-euc', this.here(line)], { cwd: dir, env: { ...this.computer.env, ...env } })
  }

  // page is a browser's, which stands at a path of the app, signed in as the owner.
  async page(pathname = '/') {
    const context = await this.computer.browser.newContext()
    this.t.after(() => context.close())
    const page = await context.newPage()
    await page.goto(await this.computer.cli('open', this.name, '--print'))
    await page.goto(this.url + pathname)
    return page
  }
}

// command runs a program to its end and returns what it printed.
export async function command([program, ...args], options) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  let out = ''
  let said = ''
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (said += chunk))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${out}${said}`)
  return out
}

async function listens(port) {
  return (await answers({ port, host: '127.0.0.1' })) || (await answers({ port, host: '::1' }))
}

// answers says whether something takes connections somewhere.
function answers(where) {
  return new Promise((resolve) => {
    const socket = net.connect(where)
    const done = (open) => {
      socket.destroy()
      resolve(open)
    }
    socket.on('connect', () => done(true)).on('error', () => done(false))
  })
}

// end ends a group of processes, and waits until none of it is left.
async function end(group) {
  for (let tries = 0; ; tries++) {
    try {
      process.kill(-group, tries < 100 ? 'SIGTERM' : 'SIGKILL')
    } catch {
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
