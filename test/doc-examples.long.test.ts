import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exampleProblems } from '../tools/doc-examples.ts'
import { temporaryFolder } from './support/suite/temporary-folder.ts'

const fileWith = (folder: string, name: string, example: string, fence = '```ts'): string => {
  const path = join(folder, name)
  const comment = `/**\n * Doubles.\n *\n * @example\n * ${fence}\n * ${example}\n * \`\`\`\n */`
  writeFileSync(path, `${comment}\nexport const double = (n: number): number => 2 * n\n`)
  return path
}

test('an @example that does not compile, or whose value differs, is reported with its place', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const right = fileWith(folder, 'right.ts', 'double(2) // 4')
  const otherValue = fileWith(folder, 'value.ts', 'double(2) // 5')
  const otherType = fileWith(folder, 'type.ts', "double('2') // 4")
  const compiled = fileWith(folder, 'compiled.ts', 'double(2) // 5', '```ts norun')

  expect(await exampleProblems([right, compiled])).toEqual({ count: 2, problems: [] })
  expect((await exampleProblems([right, otherValue])).problems).toEqual([`${otherValue}:4: double(2) is 4`])
  const [problem, ...more] = (await exampleProblems([right, otherType])).problems
  expect(more).toEqual([])
  expect(problem).toContain(`${otherType}:4: error TS2345`)
  const unfenced = join(folder, 'unfenced.ts')
  writeFileSync(unfenced, '/**\n * @example\n * double(2)\n */\nexport const double = 1\n')
  await expect(exampleProblems([unfenced])).rejects.toThrow(`${unfenced}:2: put the example into a fence`)
})
