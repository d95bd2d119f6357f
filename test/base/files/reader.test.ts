import { afterEach, describe, expect, test } from 'vitest'
import { Reader } from '../../../src/core/base/files/reader.ts'
import type { TaskName } from '../../../src/core/base/files/tasks.ts'
import { ownChildren } from '../../support/suite/processes.ts'
import { until } from '../../support/suite/until.ts'

const entry = new URL('../../support/engine/silent-reader-child.ts', import.meta.url)
const share = (name: string) => ({ key: name, name })
/** The process that answers. */
const ask = (reader: Reader, task: TaskName, ms = 20_000, name = 'a'): Promise<unknown> =>
  reader.run(share(name), task, {}, AbortSignal.timeout(ms))
const late = (answer: Promise<unknown>) => expect(answer).rejects.toMatchObject({ name: 'TimeoutError' })

const readers: Reader[] = []
const newReader = (): Reader => {
  const reader = new Reader(entry)
  readers.push(reader)
  return reader
}
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close()
  await until(() => ownChildren().length === 0)
})

describe('H30 simulated: the reader process', () => {
  test('is one for all shares', async () => {
    const reader = newReader()
    const [first, second] = await Promise.all([ask(reader, 'status'), ask(reader, 'status', 20_000, 'b')])
    expect(await ask(reader, 'status')).toBe(first)
    expect(second).toBe(first)
    expect(ownChildren()).toEqual([first])
  })

  test('is replaced when a task runs past its deadline, and killed', async () => {
    const reader = newReader()
    const first = await ask(reader, 'status')
    await late(ask(reader, 'space', 50))
    await until(() => !ownChildren().includes(first as string))
    expect(await ask(reader, 'status')).not.toBe(first)
  })

  test('ends no task of another share that is under way', async () => {
    const reader = newReader()
    const first = await ask(reader, 'status')
    const slow = ask(reader, 'mayWrite', 20_000, 'b')
    await late(ask(reader, 'space', 50))
    expect(await slow).toBe(first)
    await until(() => ownChildren().length === 0)
  })

  test('a hundred tasks on a share that does not answer take no more than two processes at a time', async () => {
    const reader = newReader()
    await ask(reader, 'status')
    let most = 0
    const watch = setInterval(() => {
      most = Math.max(most, ownChildren().length)
    }, 5)
    await Promise.all(Array.from({ length: 100 }, (_, index) => late(ask(reader, 'space', 20 + index))))
    clearInterval(watch)
    expect(most).toBeLessThanOrEqual(2)
    expect(typeof (await ask(reader, 'status', 20_000, 'b'))).toBe('string')
  })

  test('that somebody kills is replaced once for a task, which then fails', async () => {
    await expect(ask(newReader(), 'realPath')).rejects.toThrow('the process that reads shares has failed')
  })

  test('that cannot be started is an error of its own', async () => {
    const reader = new Reader(new URL('file:///no/such/reader.ts'))
    await expect(ask(reader, 'status')).rejects.toThrow('the process that reads shares has failed')
  })
})
