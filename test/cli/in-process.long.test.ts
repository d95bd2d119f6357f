import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { beforeAll, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { commandLines } from './command-lines.ts'

const home = temporaryHome()
// Each line has the same outcome from the second time on: the user that it adds exists.
beforeAll(async () => {
  for (const args of commandLines) await home.run(args)
})

test('svc runs in the process of its caller with the answers, messages and exit codes of a process of its own', {
  timeout: 120_000,
}, async () => {
  const steady = commandLines.filter(([name]) => name !== 'health' && name !== 'doctor')
  for (const args of steady) {
    const [inside, outside] = [await home.run(args), await home.svc(args)]
    expect([args, inside]).toEqual([args, outside])
  }
})

test('several command lines of one real process leave what the first one leaves', { timeout: 60_000 }, async () => {
  const program = `
    const { main, processIo } = require(${JSON.stringify(new URL('../../dist/main.cjs', import.meta.url).pathname)})
    const count = () => process.eventNames().map((name) => [String(name), process.listenerCount(name)])
    const lines = ${JSON.stringify(commandLines)}
    const run = async () => { for (const line of lines) await main(processIo(), line) }
    run().then(async () => {
      const before = JSON.stringify(count())
      await run()
      process.exitCode = JSON.stringify(count()) === before ? 0 : 99
    })`
  const child = spawn(process.execPath, ['-e', program], { env: home.env, stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
})
