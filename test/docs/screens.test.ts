import { readdirSync, readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { screenAfter } from '../../tools/captures/ansi.ts'

const folder = new URL('../../docs/', import.meta.url)
const linked = [...readFileSync(new URL('screens.md', folder), 'utf8').matchAll(/\]\(screens\/([\w.-]+)\)/g)]
const images = linked.map(([, name = '']) => name)

test('docs/screens.md shows each image of its folder once, and each is small', () => {
  expect(images.toSorted()).toEqual(readdirSync(new URL('screens', folder)).toSorted())
  for (const name of images) expect(statSync(new URL(`screens/${name}`, folder)).size).toBeLessThan(60_000)
})

test.each(images)('%s names no folder and no host of the machine that made it', (name) => {
  const text = readFileSync(new URL(`screens/${name}`, folder), 'utf8')
  expect(text).not.toMatch(/\/(?:tmp|work|root|Users)\b|�/)
  expect(text).not.toContain(`>${hostname()}<`)
})

test('a capture is what the terminal shows at the end, in runs of one style', () => {
  const output = 'Checking\r\x1b[2K\x1b[32m✓\x1b[39m 日本 ok\nabcdefghij\n\n'
  const plain = { bold: false, dim: false, colour: undefined }
  expect(screenAfter(output, 8)).toEqual([
    [
      { column: 0, text: '✓', ...plain, colour: 2 },
      { column: 2, text: '日本', ...plain },
      { column: 7, text: 'o', ...plain },
    ],
    [{ column: 0, text: 'k', ...plain }],
    [{ column: 0, text: 'abcdefgh', ...plain }],
    [{ column: 0, text: 'ij', ...plain }],
  ])
})
