// Debian's WordPress, set up in the browser and then used: its many redirects all
// have to stay at the public address, and end.
import assert from 'node:assert/strict'

export default {
  heading: 'WordPress',
  async run(stage) {
    await stage.begin()
    await stage.start({ user: 'www-data' })
    await stage.publish()
    await stage.healthy('answers')

    const page = await stage.page()
    const elsewhere = []
    page.on('request', (request) => request.isNavigationRequest() && !request.url().startsWith(stage.url + '/') && elsewhere.push(request.url()))
    assert.equal(page.url(), stage.url + '/wp-admin/install.php', await page.content())
    await page.fill('[name=weblog_title]', 'Porch')
    await page.fill('[name=user_name]', 'maya')
    await page.fill('[name=admin_password]', 'correct horse battery staple')
    await page.fill('[name=admin_email]', 'maya@example.net')
    await page.click('#submit')
    await page.waitForURL('**/install.php?step=2')

    // It believes that it was asked by http:, and sends who signs in to https: for ever.
    await assert.rejects(page.goto(stage.url + '/wp-login.php'), /ERR_TOO_MANY_REDIRECTS/)
    await stage.told('answers')
    await stage.options()

    await page.goto(stage.url + '/wp-login.php')
    await page.fill('#user_login', 'maya')
    await page.fill('#user_pass', 'correct horse battery staple')
    await page.click('#wp-submit')
    await page.waitForURL(stage.url + '/wp-admin/')

    // Its first post by an old address, and a folder without its slash.
    await page.goto(stage.url + '/?p=1')
    assert.match(await page.textContent('body'), /Hello world!/)
    await page.goto(stage.url + '/wp-admin')
    assert.equal(page.url(), stage.url + '/wp-admin/')
    assert.deepEqual(elsewhere, [])
  },
}
