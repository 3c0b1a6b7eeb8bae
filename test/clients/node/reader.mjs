// Opens an app on somebody's computer in their name:
//
//   AUTH_URL=https://control.example CLIENT_ID=… CLIENT_SECRET=… \
//   REDIRECT_URI=http://127.0.0.1:8914/callback node reader.mjs notes
import { readFile, writeFile } from 'node:fs/promises'
import http from 'node:http'
import * as oauth from 'openid-client'

// tokenFile holds the refresh token between two runs. It is a secret.
const tokenFile = 'reader.token'

const { AUTH_URL, CLIENT_ID, CLIENT_SECRET, REDIRECT_URI } = process.env
// The discovery document says where the two endpoints are.
const config = await oauth.discovery(new URL(AUTH_URL), CLIENT_ID, CLIENT_SECRET, undefined, { algorithm: 'oauth2' })

// refresh trades the kept refresh token for a new pair.
async function refresh() {
  return oauth.refreshTokenGrant(config, await readFile(tokenFile, 'utf8'))
}

// over says whether the person has to be asked (again): nothing was kept, it was
// used or is too old, or they revoked it. Any other failure is worth another try.
const over = (error) => error.code === 'ENOENT' || ['invalid_grant', 'access_denied'].includes(error.error)

// askPerson has the person allow this program in their browser.
async function askPerson() {
  const state = oauth.randomState()
  const verifier = oauth.randomPKCECodeVerifier()
  const redirect = new URL(REDIRECT_URI)
  const server = http.createServer().listen(redirect.port, redirect.hostname)
  try {
    const answered = new Promise((resolve, reject) => {
      server.on('error', reject)
      server.on('request', (request, response) => {
        const url = new URL(request.url, redirect)
        if (url.pathname !== redirect.pathname || url.searchParams.get('state') !== state) {
          response.writeHead(404).end() // not the answer to this question
          return
        }
        response.end('You can close this window.\n')
        resolve(url)
      })
    })
    const address = oauth.buildAuthorizationUrl(config, {
      redirect_uri: REDIRECT_URI,
      scope: 'connect',
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    console.log('Open', address.href)
    // Throws access_denied when they said no.
    return await oauth.authorizationCodeGrant(config, await answered, { pkceCodeVerifier: verifier, expectedState: state })
  } finally {
    server.close()
    server.closeIdleConnections()
  }
}

const token = await refresh().catch((error) => {
  if (over(error)) return askPerson()
  throw error
})
// The refresh token is good once: keep the new one before anything else.
await writeFile(tokenFile, token.refresh_token, { mode: 0o600 })
const app = new URL(`https://${process.argv[2]}.${token.host}`)
const answer = await oauth.fetchProtectedResource(config, token.access_token, app, 'GET')
console.log(answer.status)
console.log(await answer.text())
