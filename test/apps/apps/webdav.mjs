// WebDAV with an app password: a file is put, moved into a folder, and read.
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'

export default {
  heading: 'WebDAV',
  async run(stage) {
    await stage.begin()
    await mkdir(path.join(stage.dir, 'files'))
    await stage.start({ user: 'www-data' })
    await stage.publish()
    await stage.healthy('answers')
    await stage.options()
    await stage.healthy('answers')

    const away = path.join(stage.dir, 'away')
    await mkdir(away)
    await writeFile(path.join(away, 'report.txt'), 'A quiet year.\n')
    for (const line of stage.recipe.elsewhere) await stage.elsewhere(line, away)
    assert.equal(await readFile(path.join(stage.dir, 'files', '2026', 'report.txt'), 'utf8'), 'A quiet year.\n')
    assert.equal(await stage.elsewhere('rclone cat files:2026/report.txt', away), 'A quiet year.\n')
    assert.equal(await stage.elsewhere('rclone lsf --recursive files:', away), '2026/\n2026/report.txt\n')
    const keyed = 'rclone lsf --recursive :webdav: --webdav-vendor other --webdav-url https://files.maya.example.net --retries 1 --header "X-Porchlight-Key: PASSWORD"'
    assert.equal(await stage.elsewhere(keyed, away), '2026/\n2026/report.txt\n')
    await assert.rejects(stage.elsewhere(keyed.replace('PASSWORD', 'plp_wrong'), away), /401/)
    await assert.rejects(stage.elsewhere('rclone lsf files: --webdav-pass "$(rclone obscure wrong)" --retries 1', away), /401/)
  },
}
