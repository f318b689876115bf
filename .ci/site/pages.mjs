// Copies the Markdown of docs/ and the README to pages/, where VitePress reads it.
// Links to files outside docs/ lead to the repository.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const tree = join(here, '..', '..')
const docs = join(tree, 'docs')
const pages = join(here, 'pages')
const repository = 'https://github.com/terrace-iac/terrace/blob/main/'

rmSync(pages, { recursive: true, force: true })
mkdirSync(pages, { recursive: true })
for (const dir of ['images', 'schemas']) cpSync(join(docs, dir), join(pages, 'public', dir), { recursive: true })
cpSync(join(docs, 'images'), join(pages, 'images'), { recursive: true })

// move returns the text of a page of the directory `from` (as seen from the tree's root) with
// its relative links rewritten for the site.
function move(text, from) {
  return text.replace(/\]\(([^)#\s:]+)(#[^)\s]*)?\)/g, (_, path, anchor = '') => {
    const target = posix.normalize(posix.join(from, path))
    if (target === 'README.md') return `](./index.md${anchor})`
    if (target === 'docs/README.md') return `](./contents.md${anchor})`
    if (target.startsWith('docs/images/')) return `](./${target.slice(5)}${anchor})`
    if (target.startsWith('docs/schemas/')) return `](/${target.slice(5)}${anchor})`
    if (target.startsWith('docs/') && target.endsWith('.md')) return `](./${target.slice(5)}${anchor})`
    return `](${repository}${target}${anchor})`
  })
}

// escape keeps Vue from reading {{ }} and <NAME> outside of code.
function escape(text) {
  let fenced = false
  return text.split('\n').map(line => {
    if (/^\s*(```|~~~)/.test(line)) { fenced = !fenced; return line }
    if (fenced || /^ {4}/.test(line)) return line
    return line.split(/(`[^`]*`)/).map((part, i) => i % 2 ? part : part.replace(/<(?![!/]?(?:img|br|a|p|div|table|tr|td|th|picture|source)\b)/g, '&lt;').replace(/\{\{/g, '&#123;&#123;')).join('')
  }).join('\n')
}

const page = (name, text, from) => writeFileSync(join(pages, name), escape(move(text, from)).replace(/`([^`\n]*\{\{[^`\n]*)`/g, (_, code) => `<code v-pre>${code.replace(/&/g, '&amp;').replace(/</g, '&lt;')}</code>`))

page('index.md', readFileSync(join(tree, 'README.md'), 'utf8'), '')
for (const name of readdirSync(docs)) {
  if (name.endsWith('.md')) page(name === 'README.md' ? 'contents.md' : name, readFileSync(join(docs, name), 'utf8'), 'docs')
}
