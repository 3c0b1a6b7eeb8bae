// What programs use and browsers do not see: tools of an assistant, and uploads that go on
// after they broke off.
import assert from 'node:assert/strict'

const mcp = {
  heading: 'MCP servers',
  async run(stage) {
    await stage.begin({ packages: '.' })
    await stage.start()
    await stage.publish()
    await stage.told('refuses')
    await stage.options()
    await stage.healthy('answers')
    const [line] = stage.recipe.elsewhere
    assert.match(await stage.elsewhere(line, stage.dir), new RegExp(`"text":"${stage.computer.account.email}"`))
    await assert.rejects(stage.elsewhere(line.replace('PASSWORD', 'plp_wrong'), stage.dir), /401/)
  },
}

const tus = {
  heading: 'Uploads by tus',
  async run(stage) {
    await stage.begin({ packages: '.' })
    await stage.start()
    await stage.publish()
    await stage.healthy('answers')
    const page = await stage.page()
    const upload = () => page.evaluate(inParts)
    const want = { location: stage.url + '/files/', statuses: [201, 204, 200, 204], length: '10', offset: '4' }
    assert.deepEqual(await upload(), want)
    await stage.told('answers')
    await stage.options()
    await stage.healthy('answers')
    assert.deepEqual(await upload(), want)
  },
}

// inParts is carried out by the page: half of an upload, where that got to, and the rest.
async function inParts() {
  const head = { 'Tus-Resumable': '1.0.0' }
  const type = { ...head, 'Content-Type': 'application/offset+octet-stream' }
  const made = await fetch('/files', { method: 'POST', headers: { ...head, 'Upload-Length': '10' } })
  const at = made.headers.get('Location')
  const first = await fetch(at, { method: 'PATCH', headers: { ...type, 'Upload-Offset': '0' }, body: 'half' })
  const asked = await fetch(at, { method: 'HEAD', headers: head })
  const offset = asked.headers.get('Upload-Offset')
  const rest = await fetch(at, { method: 'PATCH', headers: { ...type, 'Upload-Offset': offset }, body: ' whole' })
  return { location: at.slice(0, at.lastIndexOf('/') + 1), statuses: [made.status, first.status, asked.status, rest.status], length: rest.headers.get('Upload-Offset'), offset }
}

export default [mcp, tus]
