// An app in Node that writes down what it is asked, one line of JSON each.
const http = require('node:http')
const fs = require('node:fs')
const log = process.argv[2]
const server = http.createServer((request, response) => {
  const body = []
  request.on('data', (piece) => body.push(piece))
  request.on('end', () => {
    fs.appendFileSync(log, JSON.stringify({
      method: request.method, target: request.url, fields: pairs(request.rawHeaders), trailers: pairs(request.rawTrailers),
      body: Buffer.concat(body).toString('hex'),
    }) + '\n')
    response.setHeader('Content-Type', 'text/plain')
    response.end('seen ' + request.url + '\n')
  })
  request.on('error', () => {})
})
function pairs(raw) {
  const out = []
  for (let i = 0; i + 1 < raw.length; i += 2) out.push([raw[i], raw[i + 1]])
  return out
}
process.on('SIGTERM', () => process.exit(0))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
