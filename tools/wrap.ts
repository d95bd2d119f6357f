/**
 * Wraps the prose of the Markdown that people write at 120 columns, as `test/docs/wrap.test.ts` demands.
 *
 *     npm run wrap
 *
 * Only paragraphs with a line that is too long change, so that a correction of one word stays a difference of a few lines.
 * Tables, code, headings and HTML remain as they are. Links, images and code between backticks are never divided.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const columns = 120
const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Markdown that people write here: without the interface, which is as given, without results of benches, and without what
 * a tool says at its beginning that it has written.
 */
export const proseFiles = (): readonly string[] =>
  execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter(
      (file) =>
        file !== '' &&
        existsSync(root + file) &&
        !/^(?:test\/(?:golden|snapshot)|bench\/results)\/|^docs\/interface\.md$/.test(file),
    )
    .filter((file) => !readFileSync(root + file, 'utf8').startsWith('<!-- Written by '))

/** Lines that are no prose: blank, or a heading, a table, HTML, a definition of a link, or images alone. */
const isApart = (line: string): boolean =>
  /^\s*(?:$|#{1,6} |\||<|\[[^\]]+\]: )|^\s*(?:!\[[^\]]*\]\([^)]*\)\s*)+$/.test(line)

/** The beginning of a paragraph: quotation marks, and the mark of an item of a list. */
const opening = /^(\s*(?:> ?)*)((?:[-*+]|\d+[.)]) +)?/

/** Whether a word would begin a list, a quotation or a heading at the start of a line. */
const isMark = (word: string): boolean => /^(?:[-+*>|]|#+|=+|\d+[.)])$/.test(word)

/** The words of a paragraph, each with what must stay on one line with it. */
function wordsOf(text: string): readonly string[] {
  const words: string[] = []
  for (const [word] of text.matchAll(/(?:`+[^`]*`+|!?\[(?:`[^`]*`|[^\]`])*\](?:\([^)]*\))?|[^\s`[]+|[`[])+/g)) {
    const last = words.length - 1
    if (last >= 0 && isMark(word)) words[last] += ` ${word}`
    else words.push(word)
  }
  return words
}

const widthOf = (text: string): number => [...text].length

function paragraphOf(lines: readonly string[]): readonly string[] {
  if (lines.every((line) => widthOf(line) <= columns)) return lines
  const [, quotation = '', item = ''] = opening.exec(lines[0] ?? '') ?? []
  const text = lines.map((line, index) =>
    index === 0 ? line.slice(quotation.length + item.length) : line.slice((opening.exec(line)?.[1] ?? '').length),
  )
  const next = quotation + ' '.repeat(item.length)
  const wrapped: string[] = []
  let line = quotation + item
  let isEmpty = true
  for (const word of wordsOf(text.join(' '))) {
    if (!isEmpty && widthOf(line) + 1 + widthOf(word) > columns) {
      wrapped.push(line)
      line = next
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...wrapped, line]
}

/** The same Markdown with its prose at most 120 columns wide. */
export function wrapped(markdown: string): string {
  const output: string[] = []
  let paragraph: string[] = []
  let fence: string | undefined
  const end = (): void => {
    output.push(...paragraphOf(paragraph))
    paragraph = []
  }
  for (const line of markdown.split('\n')) {
    const [, mark] = /^\s*(?:> ?)*(?:(?:[-*+]|\d+[.)]) +)?(`{3,}|~{3,})/.exec(line) ?? []
    const isCode = fence !== undefined || mark !== undefined || (paragraph.length === 0 && /^ {4}/.test(line))
    if (isCode || isApart(line)) {
      end()
      output.push(line)
      if (fence === undefined) fence = mark
      else if (mark?.startsWith(fence)) fence = undefined
      continue
    }
    const [, quotation, item] = opening.exec(line) ?? []
    if (item !== undefined || (quotation ?? '').includes('>') !== (paragraph[0] ?? '').trimStart().startsWith('>'))
      end()
    paragraph.push(line)
  }
  end()
  return output.join('\n')
}

if (import.meta.main)
  for (const file of proseFiles()) writeFileSync(root + file, wrapped(readFileSync(root + file, 'utf8')))
