// Next.js while it is developed: a server action, one that redirects, a redirect
// of a page, and a change that shows in the open page.
import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../next', import.meta.url))

export default {
  heading: 'Next.js',
  async run(stage) {
    await stage.begin({ packages: '.' })
    await cp(source, stage.dir, { recursive: true })
    await stage.start({ env: { NEXT_TELEMETRY_DISABLED: '1' } })
    await stage.publish()
    await stage.options()

    // It makes a page when that is first asked for, which takes it longer than it is
    // asked for an answer: once a visitor has one, it answers.
    const page = await stage.page()
    await stage.healthy('answers')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'before: 0', null, { timeout: 60_000 })
    await page.waitForSelector('[data-alive]') // its scripts run
    await page.click('#count')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'before: 1')

    await stage.write('app/text.js', "export default 'after'\n")
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'after: 1')

    await page.click('#leave')
    await page.waitForURL(stage.url + '/there')
    const went = await page.goto(stage.url + '/here')
    assert.equal(page.url(), stage.url + '/there')
    assert.equal(went.request().redirectedFrom().url(), stage.url + '/here')
  },
}
