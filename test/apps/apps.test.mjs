// Apps that people have, each as docs/recipes.md says, behind a computer in local
// mode and behind a connected one, used by its own clients. The table at the end
// has the options each of them was given, and whether Porchlight had named them.
// PORCHLIGHT_APPS=quick takes those of `make test`, a list of headings of the
// document takes those.
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import caldav from './apps/caldav.mjs'
import frameworks from './apps/frameworks.mjs'
import git from './apps/git.mjs'
import grpc from './apps/grpc.mjs'
import home from './apps/home.mjs'
import https from './apps/https.mjs'
import jupyter from './apps/jupyter.mjs'
import manifest from './apps/manifest.mjs'
import music from './apps/music.mjs'
import next from './apps/next.mjs'
import nginx from './apps/nginx.mjs'
import programs from './apps/programs.mjs'
import rails from './apps/rails.mjs'
import reactrouter from './apps/reactrouter.mjs'
import sveltekit from './apps/sveltekit.mjs'
import vite from './apps/vite.mjs'
import webdav from './apps/webdav.mjs'
import webpack from './apps/webpack.mjs'
import wordpress from './apps/wordpress.mjs'
import { startHouse } from './house.mjs'
import { Stage } from './stage.mjs'

const apps = [nginx, vite, https, git, grpc, sveltekit, reactrouter, webpack, next, ...frameworks, rails, wordpress, ...jupyter, ...home, webdav, caldav, music, ...programs, manifest]
const wanted = process.env.PORCHLIGHT_APPS ?? ''
const headings = wanted.split(',')
const chosen = apps.filter((app) => !wanted || (wanted === 'quick' ? app.quick : headings.includes(app.heading)))
if (wanted && wanted !== 'quick' && chosen.length < headings.length) throw new Error(`not all of these are tried: ${wanted}`)

const rows = []
after(async () => {
  const table = [['app', 'computer', 'options', 'named', 'result', 'seconds'], ...rows]
  const widths = table[0].map((_, i) => Math.max(...table.map((row) => row[i].length)))
  const text = table.map((row) => row.map((cell, i) => cell.padEnd(widths[i])).join('  ').trimEnd()).join('\n') + '\n'
  const out = fileURLToPath(new URL('../../out', import.meta.url))
  await mkdir(out, { recursive: true })
  await writeFile(path.join(out, 'apps.txt'), text)
})

test('apps', async (t) => {
  const house = await startHouse(t)
  for (const app of chosen) {
    for (const computer of [house.local, house.connected]) {
      await t.test(`${app.heading}, ${computer.name}`, async (t) => {
        const row = [app.heading, computer.name, '', '', 'FAILED', '']
        rows.push(row)
        const began = Date.now()
        const stage = new Stage(t, computer, app.heading)
        try {
          await app.run(stage, { quick: wanted === 'quick' })
          row[4] = 'ok'
        } finally {
          row[2] = stage.given.join(' ') || 'none'
          row[3] = stage.suggested ? 'yes' : '-'
          row[5] = ((Date.now() - began) / 1000).toFixed(1)
        }
      })
    }
  }
})
