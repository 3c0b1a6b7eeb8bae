// An MCP client by the official SDK that knows an address and what the operator issued,
// and finds the rest: order begin {url} answers {url}, where the person is to consent, and
// finish {callback, url} the tokens and what the tools answered.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { client as issued, drive } from './drive.mjs'

let consent
let verifier
let tokens
// One that nobody registered has an address as its id, and describes itself there.
const described = issued.authentication === 'described' ? issued.clientId : undefined
let information = described ? undefined : { client_id: issued.clientId, client_secret: issued.clientSecret || undefined }
const provider = {
  redirectUrl: issued.redirectUri,
  clientMetadata: { redirect_uris: [issued.redirectUri], client_name: 'Assistant' },
  clientMetadataUrl: described,
  clientInformation: () => information,
  saveClientInformation: (saved) => (information = saved),
  tokens: () => tokens,
  saveTokens: (saved) => (tokens = saved),
  redirectToAuthorization: (url) => (consent = url.href),
  saveCodeVerifier: (saved) => (verifier = saved),
  codeVerifier: () => verifier,
}

let transport
const connect = (url) => {
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
  const client = new Client({ name: 'assistant', version: '1.0.0' })
  return client.connect(transport).then(() => client)
}

drive({
  async begin({ url }) {
    try {
      await connect(url)
    } catch (error) {
      if (error instanceof UnauthorizedError) return { url: consent }
      throw error
    }
    throw new Error('nobody was asked')
  },
  async finish({ callback, url }) {
    await transport.finishAuth(new URL(callback).searchParams.get('code'))
    const client = await connect(url)
    const who = await client.callTool({ name: 'whoami' })
    const counted = []
    await client.callTool({ name: 'count', arguments: {} }, undefined, { onprogress: ({ progress }) => counted.push(progress) })
    await client.close()
    return { tokens, body: JSON.stringify({ headers: JSON.parse(who.content[0].text), counted }) }
  },
})
