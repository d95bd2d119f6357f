import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeSnapshot } from '../tools/snapshot.ts'

const committed = fileURLToPath(new URL('snapshot', import.meta.url))

/** The files that the tool writes: the path and the text of each. */
async function written(folder: string): Promise<Readonly<Record<string, string>>> {
  const paths = (await readdir(folder, { recursive: true })).filter((path) => /\.(?:json|txt)$/.test(path)).sort()
  const texts = await Promise.all(paths.map((path) => readFile(join(folder, path), 'utf8')))
  // A checkout on Windows may have changed the line ends.
  return Object.fromEntries(
    paths.map((path, index) => [path.replaceAll('\\', '/'), texts[index]?.replaceAll('\r\n', '\n') ?? '']),
  )
}

const before = await written(committed)

/** After a change that is meant, `npm run generate` writes the files anew; their difference is reviewed with it. */
describe('the output of svc about itself matches test/snapshot', () => {
  let folder: string
  let now: Readonly<Record<string, string>>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-snapshot-test-'))
    await writeSnapshot(folder)
    now = await written(folder)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('has the same commands, profiles, plans and mistakes', () => {
    expect(Object.keys(now)).toEqual(Object.keys(before))
  })
  const isMistakes = (path: string): boolean => path.startsWith('mistakes/')
  test.each(Object.keys(before).filter((path) => !isMistakes(path)))('%s', (path) => {
    expect(now[path]).toBe(before[path])
  })
  test.each(Object.keys(before).filter(isMistakes))('K11 %s has what is wrong, where, and what to do next', (path) => {
    expect(now[path]).toBe(before[path])
  })
})
