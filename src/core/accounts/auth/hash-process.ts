import { Fault } from '../../base/errors.ts'
import { errorOf, type Task, TaskProcess } from '../../base/system/task-process.ts'
import { type Argon2Input, type TagOf, tagHere } from './argon2.ts'

type Hash = Task & PromiseWithResolvers<Buffer> & { readonly task: 'argon2id'; readonly input: Argon2Input }

/** Longer than the minute between two checks of svc's own sign-in, so that these start no process each time. Milliseconds. */
const idleMs = 90_000
/** Milliseconds for which hashes are made in this process after one could not be started. */
const avoidedMs = 60_000

/** `close`: ends the process, unless somebody waits for a hash. */
export type HashProcess = { readonly tagOf: TagOf; readonly close: () => void }

/**
 * Hashes passwords in a process of low priority, which starts with the first hash and ends when nobody has signed in for
 * a while. Whoever answers requests gets the processors first, its memory goes back to the system, and where memory runs
 * out, the kernel ends it and not this one (decision 0042). `threads`: how many hashes it makes at once.
 */
export function hashProcess(threads: number, entry: URL = program()): HashProcess {
  let current: TaskProcess<Hash> | undefined
  let avoidedUntil = Number.NEGATIVE_INFINITY
  const begin = (): TaskProcess<Hash> => {
    // glibc keeps what threads have freed below this size.
    const env = { MALLOC_MMAP_THRESHOLD_: '1048576' }
    return new TaskProcess<Hash>(entry, { threads, idleMs, env }, ({ input, resolve, reject }, ending) => {
      if ('answer' in ending) {
        if ('value' in ending.answer) resolve(Buffer.from(ending.answer.value as string, 'base64'))
        else reject(errorOf(ending.answer.error))
      } else if (ending.why === undefined) {
        reject(new Fault('Unavailable', 'The process that compares passwords was ended', { retryAfter: 1 }))
      } else {
        avoidedUntil = performance.now() + avoidedMs
        tagHere(input).then(resolve, reject)
      }
    })
  }
  const tagOf: TagOf = (input) => {
    if (performance.now() < avoidedUntil) return tagHere(input)
    if (current?.isRetired !== false) current = begin()
    const hash: Hash = { ...Promise.withResolvers<Buffer>(), task: 'argon2id', input, isAbandoned: false }
    current.send(hash)
    return hash.promise
  }
  return { tagOf, close: () => current?.retire() }
}

/** The file that it runs: beside this file in the sources, beside the bundle in a build. */
const program = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './hash-main.ts' : './password-hash.cjs', import.meta.url)
