// SvelteKit while it is developed: a form, which it takes from its own Origin alone,
// and a change that shows in the open page.
import { cp } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../sveltekit', import.meta.url))

export default {
  heading: 'SvelteKit',
  async run(stage) {
    await stage.begin({ packages: '.' })
    await cp(source, stage.dir, { recursive: true })
    await stage.start()
    await stage.opened() // it makes a page when that is first asked for
    await stage.publish()
    await stage.knowsLocalhostAlone()

    const page = await stage.page()
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'before: 0')
    await page.click('button')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'before: 1')
    await stage.write('src/routes/text.js', "export default 'after'\n")
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'after: 1')
  },
}
