// Rails while it is developed: it answers localhost, takes a form from
// its own Origin alone, and leads by its whole address to the page that follows.
import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../rails', import.meta.url))

export default {
  heading: 'Rails',
  async run(stage) {
    await stage.begin()
    await cp(source, stage.dir, { recursive: true })
    await stage.start()
    await stage.opened()
    await stage.publish()
    await stage.told('refuses') // Rails 6.1 does not take a name under localhost with a port
    await stage.options()
    await stage.healthy('answers')

    const page = await stage.page()
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'Counted: 0')
    await page.click('[type=submit]')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'Counted: 1')
    assert.equal(page.url(), stage.url + '/')
  },
}
