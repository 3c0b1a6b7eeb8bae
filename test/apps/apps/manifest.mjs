// A web app manifest, which Chromium fetches without cookies unless the page says
// otherwise.
import assert from 'node:assert/strict'

export default {
  heading: 'Web app manifests',
  async run(stage) {
    await stage.begin()
    await stage.write('without.html', '<!doctype html><title>Notes</title><link rel="manifest" href="app.webmanifest">')
    await stage.start()
    await stage.publish()
    await stage.healthy('answers')

    const page = await stage.page()
    assert.match(await manifest(page), /"name": "Notes"/)
    await page.goto(stage.url + '/without.html')
    assert.equal(await manifest(page), '', 'without the attribute it is asked for as nobody')
  },
}

// manifest is what the browser read as the page's manifest.
async function manifest(page) {
  const devtools = await page.context().newCDPSession(page)
  return (await devtools.send('Page.getAppManifest')).data ?? ''
}
