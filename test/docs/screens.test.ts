import { readdirSync, readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { width } from '../../src/cli/render/width.ts'
import { screenAfter } from '../../tools/captures/ansi.ts'

const folder = new URL('../../docs/', import.meta.url)
/** The images that a page shows, of the folder that has its name. */
const imagesOf = (page: string): readonly string[] =>
  [...readFileSync(new URL(`${page}.md`, folder), 'utf8').matchAll(/!\[[^\]]+\]\(([\w-]+)\/([\w.-]+)\)/g)].flatMap(
    ([, of, name = '']) => (of === page ? [name] : []),
  )
const images = imagesOf('screens')

test.each(['screens', 'status-page'])('docs/%s.md shows each image of its folder once, and each is small', (page) => {
  const names = imagesOf(page)
  expect(names.length).toBeGreaterThan(2)
  expect(names.toSorted()).toEqual(readdirSync(new URL(page, folder)).toSorted())
  for (const name of names) expect(statSync(new URL(`${page}/${name}`, folder)).size).toBeLessThan(40_000)
})

test.each(images)('%s names no folder and no host of the machine that made it', (name) => {
  const text = readFileSync(new URL(`screens/${name}`, folder), 'utf8')
  expect(text).not.toMatch(/\/(?:tmp|work|root|Users)\b|�/)
  expect(text).not.toContain(`>${hostname()}<`)
})

/** The lines of an image, from its texts, each at its column. */
function linesOf(name: string): readonly string[] {
  const image = readFileSync(new URL(`screens/${name}`, folder), 'utf8')
  const lines = new Map<string, string>()
  for (const [, x = '', y = '', escaped = ''] of image.matchAll(/<text x="(\d+)" y="(\d+)"[^>]*>([^<]*)</g)) {
    const before = lines.get(y) ?? ''
    const text = escaped.replaceAll('&quot;', '"')
    lines.set(y, before + ' '.repeat(Math.max(0, (Number(x) - 12) / 8 - width(before))) + text)
  }
  return [...lines.values()]
}

test.each([80, 120])(
  'K14 200 monitors at %i columns: one line for what is ok, six failures, the verdict',
  (columns) => {
    for (const theme of ['dark', 'light']) {
      const lines = linesOf(`many-${columns}-${theme}.svg`)
      const first = lines.findIndex((line) => /^ {2}✓ 19[34] ok/.test(line))
      const signs = lines.map((line) => /^ {2}([✓!✗·?]) /.exec(line)?.[1])
      expect(signs.slice(first).filter((sign) => sign === '✗')).toHaveLength(6)
      expect(signs.findLast((sign) => sign !== undefined)).toBe('✗')
      expect(lines.slice(first).join(' ')).toMatch(/✗ UNHEALTHY {2}this machine · 6 of 200 monitors failed/)
      expect(lines.length).toBeLessThan(30)
      for (const line of lines) expect(width(line)).toBeLessThanOrEqual(columns)
    }
  },
)

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
