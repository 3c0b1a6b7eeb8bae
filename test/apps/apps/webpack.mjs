// webpack-dev-server, whose page is changed while it is open: without a WebSocket
// that the server accepts, nothing happens.
export default {
  heading: 'webpack-dev-server',
  async run(stage) {
    await stage.begin({ packages: '.' })
    await stage.write('public/index.html', '<!doctype html><title>webpack</title><h1></h1><script src="/main.js"></script>')
    await stage.write(
      'src/index.js',
      'import text from "./text.js"\nconst show = () => (document.querySelector("h1").textContent = text)\nshow()\nimport.meta.webpackHot.accept("./text.js", show)\n',
    )
    await stage.write('src/text.js', 'export default "before"\n')
    await stage.start()
    await stage.opened()
    await stage.publish()
    await stage.knowsLocalhostAlone()

    const page = await stage.page()
    await page.evaluate(() => (window.notReloaded = true))
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'before')
    await stage.write('src/text.js', 'export default "after"\n')
    await page.waitForFunction(() => document.querySelector('h1').textContent === 'after' && window.notReloaded)
  },
}
