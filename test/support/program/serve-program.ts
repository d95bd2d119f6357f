import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { serveDefaults } from '../../../src/core/protocol/service/service.ts'
import { openCore } from '../../../src/core/service/open.ts'
import type { Order, Report } from '../faults/shortage.ts'
import { farMs } from '../suite/until.ts'
import { unwatched } from './unwatched.ts'

const program = new URL('../../../bin/run.js', import.meta.url).pathname
const shortage = new URL('../faults/shortage.ts', import.meta.url).href

export const userName = 'Ann'
export const password = 'violet-harbour-42'

/** A real `svc serve` of the built program, in a process and a folder of its own, with the Admin Ann in its store. */
export type ServeProcess = {
  readonly port: number
  readonly pid: number
  /** Has calls in it fail: see `Order`. */
  readonly order: (order: Order) => Promise<Report>
  /** Its svc.yaml. */
  readonly config: string
  readonly signal: (name: NodeJS.Signals) => void
  /** What it has written to its log. */
  readonly log: () => string
  /** SIGTERM; gives the exit code. */
  readonly stop: () => Promise<number | null>
}
export type ServeOptions = {
  /**
   * The text of svc.yaml, for a process that has this folder to itself. It runs nothing by itself unless the text says how
   * often: calls that fail must fail for the test's own caller.
   */
  readonly yaml?: (folder: string) => string
  /** The most descriptors that it may have open. */
  readonly descriptors?: number
  /** Has the call to the file system fail that comes after so many others, counted from its very start. */
  readonly failAt?: number
}

/** A folder with an existing store, so that the process itself has not handled a sign-in. */
async function storeFolder(yaml: ServeOptions['yaml'] = () => '{}\n'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-shortage-'))
  mkdirSync(join(folder, 'store'), { mode: 0o700 })
  writeFileSync(join(folder, 'svc.yaml'), unwatched(yaml(folder)), { mode: 0o600 })
  writeFileSync(join(folder, 'version'), '1\n')
  const { runtime } = await openCore({
    version: '0',
    config: { origin: undefined, types: {}, serve: serveDefaults, warnings: [] },
    store: join(folder, 'store', 'svc.db'),
    shared: false,
    details: 'anyone',
  })
  await runtime.admin?.users.add({ userName, password, roles: ['Admin'] }, { who: 'local:test', correlationId: 'test' })
  await runtime.close()
  return folder
}

/** Starts it and waits until it listens. Throws what it has written when it ends instead. */
export async function startServeProcess({ yaml, descriptors, failAt }: ServeOptions = {}): Promise<ServeProcess> {
  const folder = await storeFolder(yaml)
  const portFile = join(folder, 'port')
  const svc = [program, 'serve', '--port', '0', '--port-file', portFile, '--store', join(folder, 'store', 'svc.db')]
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--import', shortage]
  const command = [...node, ...svc, '--config', join(folder, 'svc.yaml')]
  const limited = ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh', ...command]
  const [file = '', ...args] = descriptors === undefined ? command : limited
  const child = spawn(file, args, {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      SVC_HOME: folder,
      NODE_DISABLE_COMPILE_CACHE: '1',
      ...(failAt === undefined ? {} : { FAIL_FILE_CALL: String(failAt) }),
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log += String(chunk)
  })
  const closed = once(child, 'close')
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    const timer = setTimeout(kill, farMs)
    if (isRunning()) child.kill(signal)
    await closed
    clearTimeout(timer)
    process.off('exit', kill)
    rmSync(folder, { recursive: true, force: true })
    return child.exitCode
  }
  const ends = performance.now() + farMs
  while (performance.now() < ends && isRunning() && !existsSync(portFile)) await wait(50)
  const port = isRunning() && existsSync(portFile) ? Number(readFileSync(portFile, 'utf8')) : 0
  if (port === 0 || child.pid === undefined) throw new NotStarted(await end('SIGKILL'), log)
  return {
    port,
    pid: child.pid,
    order: async (order) => {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(farMs) })
      child.send(order)
      return ((await answer) as [Report])[0]
    },
    config: join(folder, 'svc.yaml'),
    signal: (name) => void child.kill(name),
    log: () => log,
    stop: () => end('SIGTERM'),
  }
}

export class NotStarted extends Error {
  readonly code: number | null
  readonly log: string
  constructor(code: number | null, log: string) {
    super(`svc serve did not start (exit ${code}): ${log}`)
    this.code = code
    this.log = log
  }
}
