import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import type { Probe } from '../../../src/core/checks/child/probes.ts'
import { serveProbe } from '../../../src/core/checks/child/serve.ts'

// A child like the real one, with probes that misbehave in every way there is.
const block = (): never => {
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
}
const grandchild = (): number | undefined =>
  spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' }).pid

const misbehaving: Record<string, Probe> = {
  echo: async (input) => input,
  environment: async () => process.env,
  block: async () => block(),
  reports: async () => {
    process.stderr.write(`${process.pid} ${grandchild()}\n`)
    return block()
  },
  dies: async () => {
    process.stderr.write('the last words\n')
    // Until the thread that waits for the parent's end runs: it must not hold the exit.
    await wait(500)
    return process.exit(7)
  },
  leaves: async (input) => {
    const { writeFileSync } = await import('node:fs')
    writeFileSync(String(input), `${process.pid} ${grandchild()}`)
    await wait(500)
    return process.exit(0)
  },
  floods: async () => 'x'.repeat(2 * 1024 * 1024),
  babbles: async () => process.stdout.write('not JSON\n'),
  refuses: async () => {
    throw new ProbeError('data', 'page 3 is torn', ['one detail'])
  },
  throwsLater: async () => {
    setImmediate(() => {
      throw Object.assign(new TypeError('nobody caught this'), { code: 'ELATER' })
    })
    return await wait(20_000)
  },
  throws: async () => {
    throw Object.assign(new Error('no way in'), { code: 'EACCES' })
  },
}

void serveProbe(
  Object.fromEntries(Object.entries(misbehaving).map(([name, probe]) => [name, async () => ({ default: probe })])),
)
