import { writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { serveTasks } from '../../base/system/serve-tasks.ts'
import { type Argon2Input, tagHere } from './argon2.ts'

// The main program of the process that hashes passwords. The threads that it hashes in begin later and inherit the priority.
attempt(() => setPriority(5))
attempt(() => writeFileSync('/proc/self/oom_score_adj', '1000'))
serveTasks({ argon2id: async (input: Argon2Input) => (await tagHere(input)).toString('base64') })

/** Does what not every system has or permits. */
function attempt(action: () => void): void {
  try {
    action()
  } catch {
    // It hashes without.
  }
}
