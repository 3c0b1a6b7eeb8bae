import * as oauth from 'oauth4webapi'
import { client, drive, Refused } from './drive.mjs'

// There is no discovery document; the metadata is written down by hand.
const server = {
  issuer: client.authUrl,
  authorization_endpoint: client.authUrl + '/oauth/authorize',
  token_endpoint: client.authUrl + '/oauth/token',
  revocation_endpoint: client.authUrl + '/oauth/revoke',
}
const who = { client_id: client.clientId }
const methods = {
  basic: () => oauth.ClientSecretBasic(client.clientSecret),
  form: () => oauth.ClientSecretPost(client.clientSecret),
  none: () => oauth.None(),
  private_key_jwt: async () => oauth.PrivateKeyJwt({
    key: await crypto.subtle.importKey('jwk', client.key, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']),
    kid: client.key.kid,
  }),
}
const authentication = await methods[client.authentication]()
const verifier = oauth.generateRandomCodeVerifier()
const state = oauth.generateRandomState()
let accessToken

async function tokens(processed) {
  try {
    const answer = await processed
    accessToken = answer.access_token
    return { tokens: answer }
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError) throw new Refused(error.error, error.status)
    // An error that came with WWW-Authenticate is reported by its challenges.
    if (error instanceof oauth.WWWAuthenticateChallengeError) {
      throw new Refused((await error.response.json()).error, error.status)
    }
    throw error
  }
}

drive({
  async begin() {
    const url = new URL(server.authorization_endpoint)
    url.search = new URLSearchParams({
      client_id: client.clientId,
      redirect_uri: client.redirectUri,
      response_type: 'code',
      scope: 'connect',
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    return { url: url.href }
  },
  async finish({ callback }) {
    const params = oauth.validateAuthResponse(server, who, new URL(callback), state)
    const response = await oauth.authorizationCodeGrantRequest(
      server, who, authentication, params, client.redirectUri, verifier,
    )
    return tokens(oauth.processAuthorizationCodeResponse(server, who, response))
  },
  async call({ url }) {
    try {
      const response = await oauth.protectedResourceRequest(accessToken, 'GET', new URL(url))
      return { status: response.status, body: await response.text() }
    } catch (error) {
      if (error instanceof oauth.WWWAuthenticateChallengeError) {
        return { status: error.status, body: await error.response.text() }
      }
      throw error
    }
  },
  async refresh({ refreshToken }) {
    const response = await oauth.refreshTokenGrantRequest(server, who, authentication, refreshToken)
    return tokens(oauth.processRefreshTokenResponse(server, who, response))
  },
  async revoke({ token }) {
    const response = await oauth.revocationRequest(server, who, authentication, token)
    return { status: response.status, refused: await oauth.processRevocationResponse(response) }
  },
})
