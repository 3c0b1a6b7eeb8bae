// The part of a driver that is not the library: reads orders, one JSON object a
// line, and answers each with one (drivers_test.go says which there are).
import readline from 'node:readline'

export const client = JSON.parse(process.env.OAUTH_CLIENT)

// Refused is the server's OAuth error as the library reports it.
export class Refused extends Error {
  constructor(code, status) {
    super(code)
    this.answer = { refused: { code, status } }
  }
}

// drive carries out orders until there are no more.
export async function drive(library) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line)
    let answer
    try {
      answer = await library[order.do](order)
    } catch (error) {
      answer = error instanceof Refused ? error.answer : { failed: String(error?.stack ?? error) }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
}
