// An MCP server by the official SDK, as its author starts it on a port of their own
// computer: one tool says who calls, one counts in a stream of events. The first line of
// its output is the port. It ends when its input ends.
import http from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

function server(headers) {
  const mcp = new McpServer({ name: 'notes', version: '1.0.0' })
  mcp.registerTool('whoami', { description: 'Who calls, as the headers say' }, () => ({
    content: [{ type: 'text', text: JSON.stringify(headers) }],
  }))
  mcp.registerTool('count', { description: 'Counts to three in notifications' }, async ({ sendNotification, _meta }) => {
    for (let progress = 1; progress <= 3; progress++) {
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken: _meta.progressToken, progress, total: 3 },
      })
    }
    return { content: [{ type: 'text', text: 'three' }] }
  })
  return mcp
}

const listener = http.createServer(async (req, res) => {
  if (new URL(req.url, 'http://localhost').pathname !== '/mcp') {
    res.writeHead(404).end()
    return
  }
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  res.on('close', () => transport.close())
  await server(req.headers).connect(transport)
  await transport.handleRequest(req, res)
})
listener.listen(0, '127.0.0.1', () => console.log(listener.address().port))
process.stdin.on('end', () => process.exit()).resume()
