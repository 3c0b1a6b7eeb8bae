// A repository of 50 MB (10 in the quick tests), cloned and pushed to over git's
// smart HTTP with an app password, by git http-backend behind Apache.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../stage.mjs'

export default {
  heading: 'git',
  quick: true,
  async run(stage, { quick }) {
    await stage.begin()
    await stage.start({ user: 'www-data' })
    await stage.publish()
    await stage.healthy('answers')

    // git asks a program for the user name and the password.
    const ask = path.join(stage.dir, 'ask')
    await writeFile(ask, `#!/bin/sh\ncase $1 in Username*) echo '${stage.computer.account.email}' ;; *) echo '${stage.password}' ;; esac\n`, { mode: 0o700 })
    const env = { GIT_ASKPASS: ask, GIT_AUTHOR_NAME: 'Maya', GIT_AUTHOR_EMAIL: 'maya@example.net', GIT_COMMITTER_NAME: 'Maya', GIT_COMMITTER_EMAIL: 'maya@example.net' }
    const away = path.join(stage.dir, 'away')
    await mkdir(away)
    const [clone, ...push] = stage.recipe.elsewhere
    await stage.elsewhere(clone, away, env)
    const tree = path.join(away, 'notes')
    const large = randomBytes((quick ? 10 : 50) << 20)
    await writeFile(path.join(tree, 'film.bin'), large)
    await stage.elsewhere('git add film.bin', tree, env)
    for (const line of push) await stage.elsewhere(line.replace(/^cd notes && /, ''), tree, env)

    // What arrived is whole, for git itself and for who clones it anew.
    await command(['git', '-c', 'safe.directory=*', '-C', path.join(stage.dir, 'repos', 'notes.git'), 'fsck', '--strict'], {})
    const again = path.join(stage.dir, 'again')
    await mkdir(again)
    await stage.elsewhere(clone, again, env)
    assert.ok(large.equals(await readFile(path.join(again, 'notes', 'film.bin'))))

    await writeFile(ask, '#!/bin/sh\necho wrong\n', { mode: 0o700 })
    await assert.rejects(stage.elsewhere(clone, stage.dir, env), /Authentication failed/)

    // By the password alone, in a field of its own.
    const keyed = path.join(stage.dir, 'keyed')
    await mkdir(keyed)
    await stage.elsewhere(clone.replace('git ', 'git -c http.extraHeader="X-Porchlight-Key: PASSWORD" '), keyed, env)
    assert.ok(large.equals(await readFile(path.join(keyed, 'notes', 'film.bin'))))
  },
}
