// What the operator ends, as a visitor's browser and the owner see it: the sentence instead of the
// app, what was open is cut, and resumed the visitor is back without signing in anew.
import assert from 'node:assert/strict'
import path from 'node:path'
import test from 'node:test'
import axe from 'axe-core'
import { invite, programs, runProgram, startBrowser, startPorchlight, startServer } from './porchlight.mjs'

test('a computer that the operator suspends', async (t) => {
  const porchlight = await startPorchlight(t)
  const browser = await startBrowser(t, porchlight)
  const operator = runProgram(`${programs}/porchlight-control`, process.env)
  const data = ['--data', path.join(porchlight.data, 'control')]
  const port = await startServer(t, (req, res) => {
    if (req.url !== '/stream') return res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Notes</title>here are the notes')
    res.write('begun')
  })
  await porchlight.publish('notes', 'Notes', port)
  const page = await invite(porchlight, browser, 'ben@example.net', 'Notes')
  await page.getByText('here are the notes').waitFor()
  await page.evaluate(async () => (window.answer = await fetch('/stream')) && true) // it has begun
  const open = page.evaluate(() => window.answer.text().then(() => 'ended', () => 'cut'))
  const [{ name }] = await operator.json('computer', 'list', ...data)
  await operator.cli('suspend', 'computer', name, '--reason', 'Complaint 2211', ...data)
  assert.equal(await open, 'cut')
  const says = /Ended by the server’s operator, ask control\.localhost:\d+\./
  await page.reload()
  assert.match(await page.textContent('main'), says)
  await page.evaluate(axe.source)
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const { violations } = await page.evaluate(() => axe.run())
    assert.deepEqual(violations.map((v) => `${colorScheme}: ${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [])
  }
  assert.match(await porchlight.cli('status'), says)
  await operator.cli('resume', 'computer', name, ...data)
  while (!/here are the notes/.test(await page.textContent('body'))) await page.reload()
  assert.doesNotMatch(await porchlight.cli('status'), says)
})
