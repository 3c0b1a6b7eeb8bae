// Verifies access tokens as a server would that is handed them.
import { createRemoteJWKSet, importSPKI, jwtVerify } from 'jose'
import { client, drive } from './drive.mjs'

drive({
  async verify({ token, audience }) {
    const { publicKey } = await (await fetch(client.authUrl + '/auth/pubkey')).json()
    const key = await importSPKI(publicKey, 'EdDSA')
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      algorithms: ['EdDSA'],
      issuer: 'service-control',
      audience,
    })
    const keys = createRemoteJWKSet(new URL(client.authUrl + '/auth/jwks.json'))
    await jwtVerify(token, keys, { algorithms: ['EdDSA'], issuer: 'service-control', audience })
    return { claims: payload, header: protectedHeader }
  },
})
