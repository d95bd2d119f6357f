import { closeSync, openSync } from 'node:fs'
import { askKeychain } from '../../../src/cli/keychain/index.ts'
import { runProgram } from '../../../src/core/base/system/run-program.ts'
import { runInChild } from '../../../src/core/checks/child/index.ts'

/** Run with few descriptors (`ulimit -n`): starts child processes while none, one, two … are left, and writes what became of each. */
const attempts: Readonly<Record<string, () => Promise<unknown>>> = {
  probe: () => runInChild('backlog', { folder: '/' }, AbortSignal.timeout(10_000)),
  program: () => runProgram({ file: '/bin/true', args: [], env: {}, keep: 10 }, AbortSignal.timeout(10_000)),
  keychain: () => askKeychain({ does: 'read', service: 'svc:test', user: 'nobody' }, {}, 10_000),
}

async function outcome(attempt: () => Promise<unknown>): Promise<string> {
  try {
    const answer = await attempt()
    return typeof answer === 'object' && answer !== null && 'problem' in answer
      ? JSON.stringify(answer.problem)
      : 'well'
  } catch (error) {
    return String(error)
  }
}

// What starting a process loads, so that it is there.
for (const attempt of Object.values(attempts)) await outcome(attempt)

const outcomes: Record<string, string>[] = []
for (let free = 0; free <= 8; free += 1) {
  const some: Record<string, string> = {}
  for (const [name, attempt] of Object.entries(attempts)) {
    const descriptors: number[] = []
    try {
      for (;;) descriptors.push(openSync('/dev/null', 'r'))
    } catch {
      // None is left.
    }
    for (const descriptor of descriptors.splice(0, free)) closeSync(descriptor)
    const became = outcome(attempt)
    for (const descriptor of descriptors) closeSync(descriptor)
    some[name] = await became
  }
  outcomes.push(some)
}
process.stdout.write(JSON.stringify(outcomes))
