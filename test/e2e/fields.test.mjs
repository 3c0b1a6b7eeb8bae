// What real apps make of many header fields: none of them ever answers a request
// without knowing who asks, and beyond the bound none is asked at all.
import assert from 'node:assert/strict'
import http2 from 'node:http2'
import path from 'node:path'
import test from 'node:test'
import tls from 'node:tls'
import { readFile, writeFile } from 'node:fs/promises'
import { answers, freePort, startPorchlight, startProcess } from './porchlight.mjs'

const five = ['user', 'email', 'name', 'app', 'role']

// Each app answers "app" and the five as it sees them, in lines.
const sources = {
  node: {
    file: 'app.mjs',
    text: `import http from 'node:http'
http.createServer((req, res) => req.resume().on('end', () => res.end(['app', ...${JSON.stringify(five)}.map((n) => req.headers['x-service-' + n] ?? '')].join('\\n')))).listen(+process.argv[2], '127.0.0.1')`,
    run: (file, port) => [process.execPath, [file, port]],
  },
  python: {
    file: 'app.py',
    text: `import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class App(BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        body = '\\n'.join(['app'] + [self.headers.get('X-Service-' + n, '') for n in ${JSON.stringify(five)}]).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *_): pass
ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), App).serve_forever()`,
    run: (file, port) => ['python3', [file, port]],
    own: 100, // http.client's bound, beyond which it answers 431 itself
  },
  php: {
    file: 'app.php',
    text: `<?php
echo implode("\\n", array_merge(['app'], array_map(fn($n) => $_SERVER['HTTP_X_SERVICE_' . strtoupper($n)] ?? '', ${JSON.stringify(five)})));`,
    run: (file, port) => ['php', ['-S', '127.0.0.1:' + port, file]],
  },
  go: {
    file: 'main.go',
    text: `package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, "app")
		for _, n := range []string{${five.map((n) => `"${n}"`)}} {
			fmt.Fprint(w, "\\n", r.Header.Get("X-Service-"+n))
		}
	})))
}`,
    build: (file) => ['go', ['build', '-o', file + '.out', file]],
    run: (file, port) => [file + '.out', [port]],
  },
}

test('no request reaches an app without the five, however many fields it has', async (t) => {
  const porchlight = await startPorchlight(t)
  const ca = await readFile(path.join(porchlight.data, 'ca', 'root.pem'))
  const account = await porchlight.json('account')

  for (const [name, app] of Object.entries(sources)) {
    await t.test(name, async (t) => {
      const port = String(await freePort())
      const file = path.join(porchlight.dir, app.file)
      await writeFile(file, app.text)
      if (app.build) {
        const built = await startProcess(t, ...app.build(file), {}, async () => true)
        if (built.exitCode === null) await new Promise((resolve) => built.once('exit', resolve))
        assert.equal(built.exitCode, 0)
      }
      await startProcess(t, ...app.run(file, port), {}, () => answers(port))
      const url = new URL(await porchlight.publish(name, 'App ' + name, Number(port)))
      const opened = await porchlight.request(await porchlight.cli('open', name, '--print'))
      const cookie = opened.headers['set-cookie'].map((line) => line.split(';')[0]).join('; ')
      const want = ['app', account.accountId, account.email, account.name, 'App ' + name, 'owner'].join('\n')

      const session = http2.connect(url.origin, { createConnection: () => tls.connect({ port: url.port || 443, host: '127.0.0.1', servername: url.hostname, ca, ALPNProtocols: ['h2'] }) })
      t.after(() => session.close())
      const ask = {
        'HTTP/1.1': (method, n) =>
          new Promise((resolve, reject) => {
            const lines = [`Host: ${url.host}`, `Cookie: ${cookie}`, 'Connection: close', ...(method === 'POST' ? ['Content-Length: 2'] : [])]
            while (lines.length < n) lines.push(`A-Filler-${lines.length}: v`)
            const socket = tls.connect({ port: url.port || 443, host: '127.0.0.1', servername: url.hostname, ca }, () =>
              socket.write(`${method} / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${method === 'POST' ? 'hi' : ''}`),
            )
            let answer = ''
            socket.on('data', (piece) => (answer += piece))
            socket.on('error', reject)
            socket.on('end', () => {
              const [head, body] = answer.split('\r\n\r\n')
              resolve({ status: Number(head.split(' ')[1]), body })
            })
          }),
        'HTTP/2': (method, n) =>
          new Promise((resolve, reject) => {
            const headers = { ':method': method, ':path': '/', cookie, ...(method === 'POST' && { 'content-length': '2' }) }
            // The authority counts as Host, and its cookies as one field.
            for (let i = method === 'POST' ? 3 : 2; i < n; i++) headers['a-filler-' + i] = 'v'
            const stream = session.request(headers)
            let status, body = ''
            stream.on('response', (h) => (status = h[':status']))
            stream.on('data', (piece) => (body += piece))
            stream.on('error', reject)
            stream.on('end', () => resolve({ status, body }))
            stream.end(method === 'POST' ? 'hi' : undefined)
          }),
      }
      for (const [protocol, request] of Object.entries(ask)) {
        for (const method of ['GET', 'POST']) {
          for (const n of [20, 199, 200, 201, 1200]) {
            const { status, body } = await request(method, n)
            const what = `${protocol} ${method} with ${n}: ${status} ${body}`
            if (n > 200) {
              assert.equal(status, 431, what)
              assert.match(body, /more than 200 header fields/, what)
            } else if (n > app.own) {
              assert.equal(status, 431, what) // the app's own word
            } else {
              assert.equal(status, 200, what)
              assert.ok(body.includes(want), what) // chunked, where the app is
            }
          }
        }
      }
    })
  }
})
