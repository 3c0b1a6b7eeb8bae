// A grpc-go server, called by a grpc-go client with an app password: a single
// call, a stream, and the five headers as metadata.
import assert from 'node:assert/strict'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { command } from '../stage.mjs'

const source = fileURLToPath(new URL('../grpc', import.meta.url))

export default {
  heading: 'gRPC',
  quick: true,
  async run(stage) {
    await stage.begin()
    await command(['go', 'build', '-o', path.join(stage.dir, 'server'), './server'], { cwd: source })
    await command(['go', 'build', '-o', path.join(stage.dir, 'client'), './client'], { cwd: source })
    await stage.start()
    await stage.publish()
    await stage.told('h2c')
    await stage.options()
    await stage.healthy('answers')

    const [line] = stage.recipe.elsewhere
    const said = JSON.parse(await stage.elsewhere(line, stage.dir))
    assert.equal(said.call, 'SERVING')
    assert.deepEqual(said.stream, ['SERVING', 'NOT_SERVING'])
    assert.equal(said.email, stage.computer.account.email)
    await assert.rejects(stage.elsewhere(line.replace('PASSWORD', 'plp_wrong'), stage.dir), /Unauthenticated/)
  },
}
