// An app that believes who is there by X-Service-Token alone, as docs/writing-an-app.md has
// it. ADDRESS is its own, https://NAME.HOST; it listens on PORT.
import { createServer } from 'node:http'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const address = process.env.ADDRESS
const keys = createRemoteJWKSet(new URL(address + '/.porchlight/jwks.json')) // looks again for a key that it does not know
const expected = {
  algorithms: ['EdDSA'],
  typ: 'porchlight-id+jwt',
  issuer: 'https://' + address.slice(address.indexOf('.') + 1),
  audience: address,
  requiredClaims: ['exp', 'sub'],
}

createServer(async (req, res) => {
  try {
    const { payload } = await jwtVerify(req.headers['x-service-token'] ?? '', keys, expected)
    res.end(`${payload.sub} ${payload.email} ${payload.role}`)
  } catch (err) {
    res.writeHead(403).end(err.message)
  }
}).listen(process.env.PORT, '127.0.0.1')
