import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { heldWordsIn, problemsOf, textProblems } from '../../tools/names.ts'

const words = heldWordsIn(readFileSync(new URL('../../docs/glossary.md', import.meta.url), 'utf8'))

/** The problems of a file of this content, which has a harmless name unless another one is given. */
const planted = (folder: string, source: string, name = 'planted'): readonly string[] =>
  problemsOf(`${folder}/${name}.ts`, source)

const camel = (text: string): string => text.replace(/[ -]\w/g, (match) => match.slice(1).toUpperCase())

describe('the words that the glossary rules out', () => {
  test('are at least 25', () => {
    expect(words.length).toBeGreaterThanOrEqual(25)
  })

  test.each(words)('"$word" in a name, in the plural and in the name of a file is refused', ({ word, term }) => {
    const name = camel(word.toLowerCase())
    for (const source of [
      `const ${name} = 1`,
      `function first${name.replace(/^./, (letter) => letter.toUpperCase())}() {}`,
      `type X = { readonly ${name}sAt: number }`,
    ])
      expect(planted('test', source), source).toEqual([expect.stringContaining(`write "${term}"`)])
    expect(planted('tools', '', `${word.toLowerCase().replace(' ', '-')}-rows`)).toHaveLength(1)
  })

  test.each(words.filter(({ inText }) => inText))('"$word" in src and in documents is refused', ({ word }) => {
    expect(planted('src', `/** The ${word}. */\nexport const x = 1`)).toHaveLength(1)
    expect(textProblems('page.md', `\nThe ${word}.`)).toEqual([expect.stringMatching(/^page\.md:2 /)])
    expect(textProblems('page.md', `The member \`${word}\` of another program.`)).toEqual([])
  })

  test('are not found in the middle of other words', () => {
    expect(planted('test', 'const upgrade = 1, heartbeat = 2, rehearsal = 3')).toEqual([])
  })
})

test.each([
  ['a participle', 'const told = 1'],
  ['a word of the private vocabulary', 'const worldOf = 1'],
  ['a doc comment that begins with "What"', `/** ${'What'} it is. */\nconst x = 1`],
  ['an import under another name', "import { a as b } from './a.ts'"],
])('%s is refused', (_, source) => {
  expect(planted('src', source)).toHaveLength(1)
})
