// An OpenID provider that nobody here wrote, for openid_test.go: oidc-provider with the pages it
// brings, where whoever types a name is that one. It makes new keys at each start.
//
//   node --import ./localhost.mjs provider.mjs PORT ISSUER REDIRECT_URI LOGOUT_URI USERS_FILE
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Provider from 'oidc-provider'

const [port, issuer, redirect, logout, users] = process.argv.slice(2)
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, kid: randomUUID(), use: 'sig', alg: 'ES256' }] },
  cookies: { keys: [randomUUID()] },
  clients: [{
    client_id: 'web', client_secret: 'secret', redirect_uris: [redirect], id_token_signed_response_alg: 'ES256',
    backchannel_logout_uri: logout, backchannel_logout_session_required: true,
  }],
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
  features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: true } },
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }), // to this machine, too
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...JSON.parse(readFileSync(users))[id] }) }),
})
provider.on('backchannel.error', (_, err) => console.error('backchannel', err))
provider.on('server_error', (_, err) => console.error('server', err))
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'))
