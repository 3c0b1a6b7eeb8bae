// A media server that has users of its own, and a player that signs in there by itself: past
// Porchlight by a key in a header of its own, and by a device's certificate.
import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../stage.mjs'

export default {
  heading: 'Icecast',
  async run(stage) {
    await stage.begin()
    await mkdir(path.join(stage.dir, 'music'))
    await writeFile(path.join(stage.dir, 'music', 'song.wav'), silence(2))
    await stage.start({ user: 'www-data' })
    await stage.publish()
    await stage.healthy('answers')

    const proxy = stage.computer.env.https_proxy
    const plays = (line) => stage.elsewhere(`${line} --no-config --no-video --ao=null --tls-verify --tls-ca-file="$SSL_CERT_FILE"`, stage.dir, { http_proxy: proxy })
    const [line] = stage.recipe.elsewhere
    assert.match(await plays(line), /AO: \[null\] 8000Hz/)
    await assert.rejects(plays(line.replace('PASSWORD', 'plp_wrong')), /ended with 2/)
    await assert.rejects(plays(line.replace('listener:secret@', '')), /ended with 2/)
    await assert.rejects(plays(line.replace('listener:secret@', 'listener:wrong@')), /ended with 2/)
    assert.match(await readFile(path.join(stage.dir, 'access.log'), 'utf8'), /listener .*"GET \/song\.wav HTTP\/1\.1" 20[06] /)

    const file = path.join(stage.dir, 'player.p12')
    const { id, code } = await stage.computer.json('devices', 'add', 'player', '--app', stage.name, '--out', file)
    const pem = path.join(stage.dir, 'player.pem')
    await writeFile(pem, await command(['openssl', 'pkcs12', '-in', file, '-passin', 'pass:' + code, '-nodes']), { mode: 0o600 })
    await rm(file)
    const shown = line.replace(/--http-header-fields="[^"]*"/, `--tls-cert-file=${pem} --tls-key-file=${pem}`)
    assert.match(await plays(shown), /AO: \[null\] 8000Hz/)
    await stage.computer.cli('devices', 'revoke', id)
    await assert.rejects(plays(shown), /ended with 2/)
  },
}

// silence is a WAV of so many seconds, at 8 kHz.
function silence(seconds) {
  const rate = 8000
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + seconds * rate, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20) // PCM
  head.writeUInt16LE(1, 22) // of one channel
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(seconds * rate, 40)
  return Buffer.concat([head, Buffer.alloc(seconds * rate, 128)])
}
