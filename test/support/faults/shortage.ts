import callbacks from 'node:fs'
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import { performance } from 'node:perf_hooks'
import { DatabaseSync, StatementSync } from 'node:sqlite'

/**
 * Preloaded into the program under test (`--import`): has calls of it fail for a moment, when its parent
 * says so over IPC. An order is answered once it is carried out, with what was counted before.
 */
export type Order =
  /** Forgets what was counted and what was to fail. */
  | { readonly type: 'reset' }
  /** Fails `times` calls, the first of them after `after` others. Simulated: the call is not made. */
  | { readonly type: 'fail'; readonly calls: Calls; readonly after: number; readonly times: number }
  /** Opens files until no descriptor is left, and closes `free` of them again. Nothing is simulated. */
  | { readonly type: 'hold'; readonly free: number }
  | { readonly type: 'release' }
  /** Moves the clock that results grow old by. */
  | { readonly type: 'pass'; readonly ms: number }
export type Calls = 'files' | 'store'
export type Report = {
  /** Calls since the last reset. */
  readonly count: Readonly<Record<Calls, number>>
  /** Files of modules that were loaded since the last reset. */
  readonly loaded: readonly string[]
}

/** As it is when nothing fails. */
const openFile = callbacks.openSync.bind(callbacks)

let count = { files: 0, store: 0 }
let loaded: string[] = []
let failing: { readonly calls: Calls; readonly from: number; readonly to: number } | undefined
// For the start-up, before commands can be sent.
const atStart = process.env['FAIL_FILE_CALL']
if (atStart !== undefined) failing = { calls: 'files', from: Number(atStart), to: Number(atStart) + 1 }
let descriptors: number[] = []
let passed = 0

function call(calls: Calls, error: () => Error): void {
  count[calls] += 1
  if (failing?.calls === calls && count[calls] > failing.from && count[calls] <= failing.to) throw error()
}

const noDescriptor = (name: string): Error =>
  Object.assign(new Error(`EMFILE: too many open files, ${name}`), { errno: -24, code: 'EMFILE', syscall: name })
const badDisk = (): Error =>
  Object.assign(new Error('disk I/O error'), { code: 'ERR_SQLITE_ERROR', errcode: 10, errstr: 'disk I/O error' })

type Method = (this: unknown, ...given: unknown[]) => unknown

function replace(owner: object, name: string, make: (real: Method) => Method): void {
  const real: unknown = Reflect.get(owner, name)
  if (typeof real === 'function') Reflect.set(owner, name, make(real as Method))
}

/** Functions that take a path: a descriptor that is open already needs none. */
const paths = [
  ...['access', 'chmod', 'link', 'lstat', 'mkdir', 'mkdtemp', 'open', 'opendir', 'readdir', 'readFile', 'readlink'],
  ...['realpath', 'rename', 'rm', 'stat', 'statfs', 'symlink', 'unlink', 'writeFile'],
]
for (const name of paths) {
  replace(callbacks, `${name}Sync`, (real) => {
    return function (...input) {
      call('files', () => noDescriptor(name))
      return real.apply(this, input)
    }
  })
  replace(callbacks.promises, name, (real) => {
    return async function (...input) {
      call('files', () => noDescriptor(name))
      return await real.apply(this, input)
    }
  })
}
for (const [owner, names] of [
  [DatabaseSync.prototype, ['exec', 'prepare']],
  [StatementSync.prototype, ['all', 'get', 'run']],
] as const) {
  for (const name of names) {
    replace(owner, name, (real) => {
      return function (...input) {
        call('store', badDisk)
        return real.apply(this, input)
      }
    })
  }
}
syncBuiltinESMExports()

registerHooks({
  load: (url, context, next) => {
    if (url.startsWith('file:')) loaded.push(url)
    return next(url, context)
  },
})

const now = performance.now.bind(performance)
performance.now = () => now() + passed
// The clock of the bundle (tools/build.ts).
const uptime = process.uptime.bind(process)
process.uptime = () => uptime() + passed / 1_000

function hold(free: number): void {
  try {
    for (;;) descriptors.push(openFile('/dev/null', 'r'))
  } catch {
    // None is left.
  }
  for (const descriptor of descriptors.splice(0, free)) callbacks.closeSync(descriptor)
}

process.on('message', (order: Order) => {
  const report: Report = { count: { ...count }, loaded }
  switch (order.type) {
    case 'reset':
      count = { files: 0, store: 0 }
      loaded = []
      failing = undefined
      break
    case 'fail': {
      const from = count[order.calls] + order.after
      failing = { calls: order.calls, from, to: from + order.times }
      break
    }
    case 'hold':
      hold(order.free)
      break
    case 'release':
      for (const descriptor of descriptors) callbacks.closeSync(descriptor)
      descriptors = []
      break
    case 'pass':
      passed += order.ms
  }
  process.send?.(report)
})
// A program that stops must not be kept by who watches it.
process.channel?.unref()
