import { createHash, randomBytes } from 'node:crypto'
import { AuthorizationCode } from 'simple-oauth2'
import { client, drive, Refused } from './drive.mjs'

const library = new AuthorizationCode({
  client: { id: client.clientId, secret: client.clientSecret },
  auth: { tokenHost: client.authUrl, tokenPath: '/oauth/token', authorizePath: '/oauth/authorize' },
  options: { authorizationMethod: client.authentication === 'basic' ? 'header' : 'body' },
})
// The library knows no PKCE; it passes on what it is given.
const verifier = randomBytes(32).toString('base64url')
const state = randomBytes(16).toString('base64url')
let accessToken

async function tokens(granted) {
  try {
    const { token } = await granted
    accessToken = token.access_token
    return { tokens: token }
  } catch (error) {
    if (error.data?.payload?.error) throw new Refused(error.data.payload.error, error.output.statusCode)
    throw error
  }
}

drive({
  async begin() {
    return {
      url: library.authorizeURL({
        redirect_uri: client.redirectUri,
        scope: 'connect',
        state,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      }),
    }
  },
  finish({ callback }) {
    const params = new URL(callback).searchParams
    if (params.get('state') !== state) throw new Error('another state came back')
    return tokens(
      library.getToken({ code: params.get('code'), redirect_uri: client.redirectUri, code_verifier: verifier }),
    )
  },
  async call({ url }) {
    const response = await fetch(url, { headers: { Authorization: `Bearer ${accessToken}` } })
    return { status: response.status, body: await response.text() }
  },
  refresh({ refreshToken }) {
    return tokens(library.createToken({ refresh_token: refreshToken }).refresh())
  },
})
