// nginx answers a directory without its slash with a redirect to
// http://HOST:ITS-PORT, which leads past Porchlight or nowhere.
import assert from 'node:assert/strict'

export default {
  heading: 'nginx',
  quick: true,
  async run(stage) {
    await stage.begin()
    await stage.write('site/photos/index.html', '<title>Photos</title><h1>Photos</h1>')
    await stage.write('site/index.html', '<title>Site</title><a href="/photos">Photos</a>')
    await stage.start({ user: 'www-data' })
    await stage.publish()
    await stage.healthy('answers')

    const page = await stage.page()
    const followed = []
    page.on('response', (response) => followed.push([response.status(), response.url()]))
    await page.click('a')
    await page.waitForSelector('h1')
    assert.equal(page.url(), stage.url + '/photos/')
    assert.deepEqual(followed.slice(0, 2), [
      [301, stage.url + '/photos'],
      [200, stage.url + '/photos/'],
    ])
  },
}
