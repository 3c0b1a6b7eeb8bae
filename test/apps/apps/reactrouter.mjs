// React Router while it is developed: a form, with and without its script, which it takes
// from its own Origin alone. In local mode its pages come to everybody before the option,
// and Porchlight learns of the form from who was refused.
import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../reactrouter', import.meta.url))

export default {
  heading: 'React Router',
  async run(stage) {
    await stage.begin({ packages: '.' })
    await cp(source, stage.dir, { recursive: true })
    await stage.start()
    await stage.opened() // it makes a page when that is first asked for
    await stage.publish()
    const page = await stage.page()
    const post = () => page.evaluate(async () => (await fetch('/?index', { method: 'POST', body: new URLSearchParams({}) })).status)
    if (stage.computer.name === 'connected') await stage.told('refuses')
    else {
      assert.equal(await post(), 400)
      await stage.told('answers')
    }
    await stage.options()
    await stage.healthy('answers')

    await page.goto(stage.url)
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'Counted: 0')
    assert.equal(await post(), 200)
    await page.reload({ waitUntil: 'networkidle' })
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'Counted: 1')
    await page.click('button')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'Counted: 2')
  },
}
