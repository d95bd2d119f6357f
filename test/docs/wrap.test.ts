import { expect, test } from 'vitest'
import { proseFiles, wrapped } from '../../tools/wrap.ts'
import { read } from '../support/suite/repository.ts'

test('prose of Markdown that people write has at most 120 columns; `npm run wrap` wraps it', () => {
  const files = proseFiles()
  expect(files.length).toBeGreaterThan(60)
  expect(files.filter((file) => wrapped(read(file)) !== read(file))).toEqual([])
})

const long = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')

test('a paragraph, an item and a quotation that are too long are wrapped, and wrapping again changes nothing', () => {
  for (const begin of ['', '- ', '  1. ', '> ', '> - ']) {
    const once = wrapped(`${begin}${long}\n`)
    const [first = '', second = ''] = once.split('\n')
    expect(first.startsWith(`${begin}word0 `)).toBe(true)
    expect(second.startsWith(`${begin.replaceAll(/[^> ]/g, ' ')}word`)).toBe(true)
    expect(once.split('\n').filter((line) => line.length > 120)).toEqual([])
    expect(
      once
        .replaceAll(/[\n>]| +/g, ' ')
        .replaceAll(/ +/g, ' ')
        .trim()
        .replace(/^[-1]\.? /, ''),
    ).toBe(long)
    expect(wrapped(once)).toBe(once)
  }
})

test('code, tables, headings, images and paragraphs that fit remain as they are', () => {
  const markdown = [
    `# ${long}`,
    'short',
    'lines',
    `| ${long} |`,
    `\`\`\`sh\n${long}\n\`\`\``,
    `- item\n\n  ~~~\n  ${long}\n  ~~~`,
    `text\n\n    ${long}`,
    `![${long}](a.png)`,
    `[name]: https://${'a'.repeat(130)}`,
  ].join('\n\n')
  expect(wrapped(markdown)).toBe(markdown)
})

test('no line ends within a link or code, or begins with what would be a mark', () => {
  const link = `[${'a b '.repeat(12)}](c.md)`
  expect(wrapped(`${long.slice(0, 100)} ${link}`)).toBe(`${long.slice(0, 100)}\n${link}`)
  const code = `\`${'a b '.repeat(12)}\`,`
  expect(wrapped(`${long.slice(0, 100)} ${code}`)).toBe(`${long.slice(0, 100)}\n${code}`)
  for (const mark of ['-', '#', '1.', '+']) {
    const lines = wrapped(`${'a'.repeat(110)} bbbbbbbbb ${mark} c`).split('\n')
    expect(lines).toEqual(['a'.repeat(110), `bbbbbbbbb ${mark} c`])
  }
})
