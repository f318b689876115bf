// The site: pages come from pages.mjs, the sidebar from the tables of docs/README.md.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const contents = readFileSync(join(dirname(fileURLToPath(import.meta.url)), '..', 'pages', 'contents.md'), 'utf8')

// sidebar has a group for each heading, with the page of each row's first link.
function sidebar() {
  const groups = []
  for (const line of contents.split('\n')) {
    const heading = line.match(/^## (.*)$/)
    if (heading) groups.push({ text: heading[1], items: [] })
    const row = line.match(/^\| \[([^\]]+)\]\(\.\/([^)]+)\.md\)/)
    if (row && groups.length) groups.at(-1).items.push({ text: row[1][0].toUpperCase() + row[1].slice(1), link: '/' + row[2] })
  }
  return groups
}

export default defineConfig({
  title: 'Terrace',
  description: 'Plans and applies Terraform and OpenTofu configuration: one directory, or a whole estate of units in one process.',
  srcDir: 'pages',
  outDir: 'dist',
  cleanUrls: false,
  lastUpdated: false,
  markdown: { theme: { light: 'github-light', dark: 'github-dark' } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [{ text: 'Guides', link: '/contents' }, { text: 'Commands', link: '/commands' }, { text: 'Messages', link: '/messages' }],
    sidebar: sidebar(),
    outline: [2, 3],
  },
})
