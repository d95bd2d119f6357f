import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { describeKinds } from '../../src/core/checks/plan/index.ts'
import { receiverKinds } from '../../src/core/watch/notify/index.ts'
import { load, problemsOf, refused } from './given.ts'

const root = new URL('../../docs/', import.meta.url)
const page = await readFile(new URL('svc.yaml.md', root), 'utf8')
const fences = [...page.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(([, info = '', content = '']) => ({
  info,
  content,
}))
const good = fences.filter(({ info }) => info === 'yaml')
const invalid = fences.filter(({ info }) => info === 'yaml wrong')
/** The output of svc about the wrong example, which follows it. */
const mistakeFence = fences.find(({ info }, at) => info === 'text' && fences[at - 1]?.info === 'yaml wrong')

describe('docs/svc.yaml.md', () => {
  test('has examples, and only fences of the languages that this test knows', () => {
    expect(good.length).toBeGreaterThan(6)
    expect(fences.filter(({ info }) => !['yaml', 'yaml wrong', 'text', 'sh norun', 'sh'].includes(info))).toEqual([])
  })

  test.each(good)('an example is a configuration that svc accepts: $content', async ({ content }) => {
    const config = await load(content)
    const monitors = Object.values(config.types).flatMap((type) => type?.monitors ?? [])
    expect(monitors.length > 0 || content.startsWith('serve:')).toBe(true)
  })

  test('the mistakes are reported as on the page', async () => {
    expect(invalid).toHaveLength(1)
    const lines = problemsOf(await refused(invalid[0]?.content ?? ''))
    expect(lines.map((line) => `svc.yaml:${line}`)).toEqual(mistakeFence?.content.trimEnd().split('\n'))
  })

  test('links lead to pages that exist', async () => {
    const links = [...page.matchAll(/\]\(([^)#:]+)[^)]*\)/g)].map(([, link = '']) => link)
    expect(links.length).toBeGreaterThan(3)
    for (const link of links) expect(await readFile(new URL(link, root), 'utf8'), link).not.toBe('')
  })

  test('examples use only kinds that exist', async () => {
    const kinds = [...(await describeKinds()), ...receiverKinds].map(({ name }) => name)
    const used = good.flatMap(({ content }) => [...content.matchAll(/kind: ([\w-]+)/g)].map(([, kind]) => kind))
    expect(used.filter((kind) => !kinds.includes(kind ?? ''))).toEqual([])
  })
})
