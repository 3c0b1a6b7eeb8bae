// The two computers that every app is tried on: one in local mode, with the names
// it gives itself, and one that is connected to a control plane of the test and
// has its names under example.net. Each has a browser signed in as its owner.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import readline from 'node:readline'
import { startControl } from '../e2e/control.mjs'
import { press, programs, runProgram, startBrowser, startPorchlight, startProcess } from '../e2e/porchlight.mjs'

const program = `${programs}/porchlight`
const owner = 'maya@example.net'
export const domain = 'example.net'

// startHouse resolves once both computers answer. It ends with t.
export async function startHouse(t) {
  const proxy = await startProxy(t)
  return { local: await startLocal(t, proxy), connected: await startConnected(t, proxy) }
}

async function startLocal(t, proxy) {
  const porchlight = await startPorchlight(t)
  return computer('local', porchlight, await startBrowser(t, porchlight), proxy, [path.join(porchlight.data, 'ca', 'root.pem')])
}

async function startConnected(t, proxy) {
  const control = await startControl(t, { domain, auth: 'control.localhost' })
  await control.cli('account', 'add', owner)
  const data = path.join(control.dir, 'computer')
  const env = { ...process.env, XDG_CONFIG_HOME: path.join(control.dir, 'config'), PORCHLIGHT_DATA: data, PORCHLIGHT_API: '' }
  const porchlight = { dir: control.dir, data, ...runProgram(program, env) }
  const root = path.join(control.data, 'ca', 'root.pem')
  await startProcess(t, program, ['agent', '--api', '127.0.0.1:0', '--control', control.authUrl, '--ca', root], { env }, () =>
    porchlight.json('status').then(
      () => true,
      () => false,
    ),
  )
  const first = await startBrowser(t, control)
  await connect(control, env, await first.newPage())
  await first.close()
  // The computer's own authority is made when it is connected, and a browser
  // reads the authorities that it trusts when it starts.
  const roots = [root, path.join(data, 'connected-ca', 'root.pem')]
  const browser = await startBrowser(t, control, [`--host-resolver-rules=MAP *.${domain} 127.0.0.1`], roots)
  return computer('connected', porchlight, browser, proxy, roots)
}

// connect goes through the device flow: the code on the computer, the rest in the
// owner's browser.
async function connect(control, env, page) {
  const child = spawn(program, ['connect', control.authUrl, '--name', 'maya', '--ca', path.join(control.data, 'ca', 'root.pem')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const done = once(child, 'exit')
  let address
  for await (const line of readline.createInterface({ input: child.stdout })) {
    address = line.match(/https:\/\/\S+/)?.[0]
    if (address) break
  }
  await page.goto(address)
  await page.fill('input[name=email]', owner)
  await page.click('button.primary')
  await page.goto((await control.mail(owner, /sign in/i)).links[0])
  await press(page, 'button.primary') // sign in
  if (!(await page.locator('input[name=name]').count())) await page.click('button.primary') // the code
  await page.click('button[name=decision][value=allow]')
  const [code] = await done
  if (code !== 0) throw new Error(`connect ended with ${code}`)
}

// computer is what a test needs of either of them. roots are the authorities of
// its certificates.
async function computer(name, porchlight, browser, proxy, roots) {
  const bundle = path.join(porchlight.dir, 'roots.pem')
  await writeFile(bundle, (await Promise.all(roots.map((file) => readFile(file, 'utf8')))).join('\n'))
  const home = path.join(porchlight.dir, 'home')
  await mkdir(home, { recursive: true })
  const account = await porchlight.json('account')
  return {
    name,
    account,
    cli: porchlight.cli,
    json: porchlight.json,
    browser,
    bundle,
    // env is the environment of a client elsewhere: it finds the computer by the
    // test's proxy, as others do by DNS, and trusts its certificates.
    env: {
      ...process.env,
      HOME: home,
      XDG_CONFIG_HOME: path.join(home, '.config'),
      https_proxy: proxy,
      HTTPS_PROXY: proxy,
      no_proxy: '',
      NO_PROXY: '',
      SSL_CERT_FILE: bundle,
      GIT_SSL_CAINFO: bundle,
      CURL_CA_BUNDLE: bundle,
      REQUESTS_CA_BUNDLE: bundle,
      GIT_TERMINAL_PROMPT: '0',
      GIT_CONFIG_NOSYSTEM: '1',
    },
  }
}

// startProxy carries CONNECT to any host to the same port of 127.0.0.1.
async function startProxy(t) {
  const open = new Set()
  const server = net.createServer((client) => {
    open.add(client.on('error', () => {}).on('close', () => open.delete(client)))
    let head = ''
    client.on('data', function read(chunk) {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      client.off('data', read)
      client.pause()
      const port = Number(head.match(/^CONNECT \S+:(\d+) /)?.[1])
      if (!port) return client.destroy()
      const onward = net.connect(port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n')
        client.pipe(onward).pipe(client)
      })
      onward.on('error', () => client.destroy())
      client.on('close', () => onward.destroy())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${server.address().port}`
}
