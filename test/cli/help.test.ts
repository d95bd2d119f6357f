import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { commands, topics } from '../../src/registry.ts'

const columns = 80
const tooWide = (lines: Iterable<string>): readonly string[] => [...lines].filter((line) => line.length > columns)

test('the summary of each command and each topic fits 80 columns', async () => {
  const summaries = await Promise.all(Object.values(commands).map(async (load) => (await load()).summary ?? ''))
  expect(tooWide([...summaries, ...Object.values(topics)])).toEqual([])
})

test('the help of each command fits 80 columns, as test/snapshot has it', () => {
  const folder = new URL('../snapshot/help/', import.meta.url)
  const texts = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'))
  expect(texts.length).toBeGreaterThan(Object.keys(commands).length / 2)
  expect(tooWide(texts.flatMap((text) => text.split('\n')))).toEqual([])
})
