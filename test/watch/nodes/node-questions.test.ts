import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeQuestion } from '../../../src/core/protocol/service/service.ts'
import { NodeQuestions } from '../../../src/core/service/nodes/node-questions.ts'

const key = 'ab'.repeat(32)
const nodeOf = (name: string, process = `${name}1`, own: string | null = key): NodeQuestions => {
  const node = new NodeQuestions(name, process)
  node.key = own ?? undefined
  return node
}

/** The answer of the node at the address, and the latest question that it got. */
let answering: (question: unknown) => string | undefined = () => undefined
const questions: string[] = []
const server = createServer((request, response) => {
  const question = request.headers[nodeQuestion.header]
  questions.push(String(question))
  const answer = request.url === nodeQuestion.path ? answering(question) : undefined
  response.writeHead(answer === undefined ? 404 : 200).end(answer)
})
let address = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const bound = server.address()
  address = `http://127.0.0.1:${typeof bound === 'object' ? bound?.port : 0}`
})
afterAll(() => server.close())

test('W4 a node learns that another one speaks only with its key, its name and its configuration', async () => {
  const asker = nodeOf('b')
  const learns = async (one: NodeQuestions, config: string | undefined, by = asker): Promise<boolean> => {
    answering = (question) => one.answer(question, () => config)
    return await by.ask('a', address, 'config')
  }
  expect(await learns(nodeOf('a'), 'config')).toBe(true)
  expect(await learns(nodeOf('a'), undefined)).toBe(false)
  expect(await learns(nodeOf('a'), 'another')).toBe(false)
  expect(await learns(nodeOf('c'), 'config')).toBe(false)
  expect(await learns(nodeOf('a', 'a1', 'cd'.repeat(32)), 'config')).toBe(false)
  expect(await learns(nodeOf('a', 'a1', null), 'config')).toBe(false)
  expect(await learns(nodeOf('a'), 'config', nodeOf('b', 'b1', null))).toBe(false)
  // An address that leads back to the process that asks.
  expect(await learns(nodeOf('a', 'b1'), 'config')).toBe(false)
})

test('W4 neither a recorded question nor a recorded answer counts a second time', async () => {
  const asker = nodeOf('b')
  const other = nodeOf('a')
  let recorded: string | undefined
  answering = (question) => (recorded = other.answer(question, () => 'config'))
  expect(await asker.ask('a', address, 'config')).toBe(true)
  expect(recorded).toBeDefined()
  expect(other.answer(questions.at(-1), () => 'config')).toBeUndefined()
  answering = () => recorded
  expect(await asker.ask('a', address, 'config')).toBe(false)
})

test('W4 whoever has no key is told nothing, and nothing is looked up for it', async () => {
  const other = nodeOf('a')
  let count = 0
  const speaks = (): string => {
    count += 1
    return 'config'
  }
  await nodeOf('b', 'b1', 'cd'.repeat(32)).ask('a', address, 'config')
  const forged = [questions.at(-1), undefined, '', ['b'], `b ${'0'.repeat(32)} ${'0'.repeat(64)}`, 'x'.repeat(100_000)]
  expect(forged.map((question) => other.answer(question, speaks))).toEqual(forged.map(() => undefined))
  expect(count).toBe(0)
})

test('W4 an answer that is no answer counts as none', async () => {
  const asker = nodeOf('b')
  for (const text of ['', 'a1', `a1 ${'0'.repeat(64)}\n`, 'x'.repeat(10_000)]) {
    answering = () => text
    expect(await asker.ask('a', address, 'config')).toBe(false)
  }
  expect(await asker.ask('a', 'http://127.0.0.1:1', 'config')).toBe(false)
  expect(await asker.ask('a', 'not an address', 'config')).toBe(false)
})
