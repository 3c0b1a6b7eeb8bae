// docs/recipes.md, read: a section's commands and files are what its test runs.
//
// A block ```sh has what the owner types on the computer: lines that begin with
// porchlight are for Porchlight, the others start the app, the last of them for
// good. A block ```sh elsewhere has what somebody types on another computer. Any
// other block names a file after its language, ```nginx nginx.conf, which the app
// finds where it starts.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const page = fileURLToPath(new URL('../../docs/recipes.md', import.meta.url))
const sections = read(readFileSync(page, 'utf8'))

// recipe returns the section with a heading.
export function recipe(heading) {
  const found = sections.get(heading)
  if (!found) throw new Error(`docs/recipes.md has no section ${heading}`)
  return found
}

function read(text) {
  const sections = new Map()
  let section, block
  for (const line of text.split('\n')) {
    if (block) {
      if (line === '```') {
        add(section, block)
        block = undefined
      } else block.lines.push(line)
    } else if (line.startsWith('```')) {
      const [language, name] = line.slice(3).split(' ')
      block = { language, name, lines: [] }
    } else if (line.startsWith('#')) {
      section = { heading: line.replace(/^#+ /, ''), start: [], publish: [], options: [], elsewhere: [], files: {} }
      sections.set(section.heading, section)
    }
  }
  return sections
}

function add(section, { language, name, lines }) {
  if (language !== 'sh') {
    if (name) section.files[name] = lines.join('\n') + '\n'
  } else if (name === 'elsewhere') section.elsewhere.push(...lines)
  else
    for (const line of lines) {
      if (!line.startsWith('porchlight ')) section.start.push(line)
      else if (line.startsWith('porchlight options ')) section.options.push(line)
      else section.publish.push(line)
    }
}

// words are the arguments of a porchlight line, without its name and comment.
export function words(line) {
  const out = []
  for (const [, double, single, plain] of line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)) {
    if (plain?.startsWith('#')) break
    out.push(double ?? single ?? plain)
  }
  return out.slice(1)
}
