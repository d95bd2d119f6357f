import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import { runInChild, spawnProbe } from '../../../src/core/checks/child/index.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { ownChildren as children } from '../../support/suite/processes.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { until } from '../../support/suite/until.ts'

const entry = new URL('../../support/engine/probe-child.ts', import.meta.url)
const never = (): AbortSignal => new AbortController().signal
const ask = (probe: string, input: unknown = null, signal = never()): Promise<unknown> =>
  spawnProbe(entry, { probe, input }, signal)
const failure = async (answer: Promise<unknown>): Promise<Error> => {
  const error = await answer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Error)) throw new Error('it did not fail')
  return error
}

/** Whether a process is there, a zombie included. */
function there(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
const gone = (pids: readonly number[]): Promise<boolean> => until(() => !pids.some(there))

const folder = temporaryFolder()

describe('a probe in a child process', () => {
  test('returns its answer, whatever JSON can hold', async () => {
    const input = { text: 'ä\n"', list: [1, null, { deep: true }], long: 'x'.repeat(200_000) }
    expect(await ask('echo', input)).toEqual(input)
  })
  test('a ProbeError arrives as one; another error keeps its message and code', async () => {
    const refused = await failure(ask('refuses'))
    expect(refused).toBeInstanceOf(ProbeError)
    expect(refused).toMatchObject({ fault: 'data', message: 'page 3 is torn', details: ['one detail'] })
    expect(await failure(ask('throws'))).toMatchObject({ message: 'no way in', code: 'EACCES' })
  })
  test('an error that a driver throws outside any handler is the answer, not the source line that Node prints', async () => {
    const failed = await failure(ask('throwsLater'))
    expect(failed).toMatchObject({ message: 'nobody caught this', code: 'ELATER' })
    expect(failed).not.toBeInstanceOf(ProbeError)
  })
  test('the environment is an allow-list: no secret, no option that changes Node', async () => {
    process.env.SVC_TEST_SECRET = 'hunter2'
    process.env.NODE_OPTIONS = process.env.NODE_OPTIONS ?? ''
    onTestFinished(() => {
      delete process.env.SVC_TEST_SECRET
    })

    const names = Object.keys((await ask('environment')) as object)
    expect(names).toContain('PATH')
    expect(names).not.toContain('SVC_TEST_SECRET')
    expect(names).not.toContain('NODE_OPTIONS')
  })
  test('a child that dies is reported with its exit and its last output', async () => {
    expect(await failure(ask('dies'))).toMatchObject({
      fault: 'internal',
      message: 'the child process for dies ended without an answer (exit 7)',
      details: ['the last words'],
    })
  })
  test('an endless or invalid answer is a failure, and does not fill the memory', async () => {
    expect((await failure(ask('floods'))).message).toContain('answered more than 1 MiB')
    expect((await failure(ask('babbles'))).message).toContain('cannot be read')
  })
  test('an unknown probe is a failure that names it', async () => {
    expect((await failure(ask('nonesuch'))).message).toBe('unknown probe nonesuch')
    expect((await failure(runInChild('constructor', null, never()))).message).toBe('unknown probe constructor')
  })
  test('an aborted signal starts nothing, and its reason is thrown', async () => {
    expect(await failure(ask('echo', 1, AbortSignal.abort(new Error('too late'))))).toMatchObject({
      message: 'too late',
    })
  })
  test('a child that blocks its only thread is killed at the deadline, and reaped', async () => {
    const control = new AbortController()
    const answer = endsByDeadline(300, failure(ask('block', null, control.signal)), 30)
    setTimeout(() => control.abort(new Error('deadline')), 300)
    expect((await answer).message).toBe('deadline')
    // Nothing of ours is left, not even a zombie.
    await until(() => children().length === 0)
  })
  test('twenty concurrent children, all killed, leave no process', async () => {
    const control = new AbortController()
    const answers = Array.from({ length: 20 }, () => failure(ask('block', null, control.signal)))
    setTimeout(() => control.abort(new Error('deadline')), 200)
    for (const error of await Promise.all(answers)) expect(error.message).toBe('deadline')
    await until(() => children().length === 0)
  })
  test.runIf(process.platform !== 'win32')(
    'processes that a probe started end with it, even when it ends by itself',
    async () => {
      const pidFile = join(folder, 'pids')
      await failure(ask('leaves', pidFile))
      const pids = readFileSync(pidFile, 'utf8').split(' ').map(Number)
      expect(pids).toHaveLength(2)
      await gone(pids)
    },
  )
  test.runIf(process.platform === 'linux')(
    'a child ends with its parent, even with one that SIGKILL ends while the probe blocks',
    async () => {
      const program = `
      import { spawnProbe } from ${JSON.stringify(new URL('../../../src/core/checks/child/index.ts', import.meta.url).href)}
      spawnProbe(new URL(${JSON.stringify(entry.href)}), { probe: 'block', input: null }, new AbortController().signal)
      const { readdirSync, readFileSync } = await import('node:fs')
      setInterval(() => {
        const ours = readdirSync('/proc').filter((pid) => {
          try { return readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ')[1].split(' ')[1] === String(process.pid) }
          catch { return false }
        })
        if (ours.length) console.log(ours.join(' '))
      }, 50)`
      const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [line] = (await once(parent.stdout, 'data')) as [Buffer]
      // Long enough for the probe to block.
      await wait(400)
      parent.kill('SIGKILL')
      const pids = String(line).trim().split(/\s+/).map(Number)
      expect(pids.length).toBeGreaterThan(0)
      await gone(pids)
    },
  )
})

test.runIf(process.platform !== 'win32')(
  'without free descriptors, a child process that cannot start is a failure, and nothing else ends',
  async () => {
    const script = new URL('../../support/faults/no-descriptors.ts', import.meta.url).pathname
    const child = spawn('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, script], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 25_000,
    })
    let [messages, errors] = ['', '']
    child.stdout.on('data', (chunk) => {
      messages += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      errors += String(chunk)
    })
    const [code] = (await once(child, 'close')) as [number | null]
    expect(code, errors).toBe(0)
    const [none] = JSON.parse(messages) as Record<string, string>[]
    expect(none?.probe).toContain('the child process for backlog could not be started')
    expect(none?.program).toContain('/bin/true cannot be started')
    expect(none?.keychain).toContain('its process cannot be started')
  },
)
