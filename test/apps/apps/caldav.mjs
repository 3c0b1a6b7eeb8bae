// A calendar of the visitor's own in Radicale, used by a CalDAV client with an app
// password, and the same calendar in the owner's browser.
import assert from 'node:assert/strict'

export default {
  heading: 'CalDAV and CardDAV',
  async run(stage) {
    await stage.begin()
    await stage.start()
    await stage.publish()
    await stage.healthy('answers')
    await stage.options()
    await stage.healthy('answers')

    const [line] = stage.recipe.elsewhere
    assert.equal(await stage.elsewhere(line, stage.dir), 'Light the porch\n')
    await assert.rejects(stage.elsewhere(line.replace('PASSWORD', 'plp_wrong'), stage.dir), /401|Unauthorized/)

    const page = await stage.page()
    const mine = await page.evaluate(async (email) => {
      const response = await fetch(`/${email}/`, { method: 'PROPFIND', headers: { Depth: '1' } })
      return [response.status, await response.text()]
    }, stage.computer.account.email)
    assert.equal(mine[0], 207)
    assert.match(mine[1], /Porch/)
  },
}
