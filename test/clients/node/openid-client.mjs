import * as openid from 'openid-client'
import { client, drive, Refused } from './drive.mjs'

// There is no discovery document; the metadata is written down by hand.
const config = new openid.Configuration(
  {
    issuer: client.authUrl,
    authorization_endpoint: client.authUrl + '/oauth/authorize',
    token_endpoint: client.authUrl + '/oauth/token',
  },
  client.clientId,
  undefined,
  client.authentication === 'basic'
    ? openid.ClientSecretBasic(client.clientSecret)
    : openid.ClientSecretPost(client.clientSecret),
)
const verifier = openid.randomPKCECodeVerifier()
const state = openid.randomState()
let accessToken

async function tokens(granted) {
  try {
    const answer = await granted
    accessToken = answer.access_token
    return { tokens: answer }
  } catch (error) {
    if (error instanceof openid.ResponseBodyError) throw new Refused(error.error, error.status)
    if (error instanceof openid.WWWAuthenticateChallengeError) {
      throw new Refused((await error.response.json()).error, error.status)
    }
    throw error
  }
}

drive({
  async begin() {
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: client.redirectUri,
      scope: 'connect',
      state,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    return { url: url.href }
  },
  finish({ callback }) {
    return tokens(
      openid.authorizationCodeGrant(config, new URL(callback), { pkceCodeVerifier: verifier, expectedState: state }),
    )
  },
  async call({ url }) {
    try {
      const response = await openid.fetchProtectedResource(config, accessToken, new URL(url), 'GET')
      return { status: response.status, body: await response.text() }
    } catch (error) {
      if (error instanceof openid.WWWAuthenticateChallengeError) {
        return { status: error.status, body: await error.response.text() }
      }
      throw error
    }
  },
  refresh({ refreshToken }) {
    return tokens(openid.refreshTokenGrant(config, refreshToken))
  },
})
