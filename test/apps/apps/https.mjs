// A page that only speaks HTTPS, with a certificate it made itself.
import assert from 'node:assert/strict'

export default {
  heading: 'A NAS or router page by HTTPS',
  quick: true,
  async run(stage) {
    await stage.begin()
    await stage.write('site/index.html', '<title>NAS</title><h1>NAS</h1>')
    await stage.start({ user: 'www-data' })
    await stage.publish()
    await stage.told('https')
    await stage.options()
    await stage.healthy('answers')
    const page = await stage.page()
    assert.equal(await page.textContent('h1'), 'NAS')
    assert.equal(page.url(), stage.url + '/')
  },
}
