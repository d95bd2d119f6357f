import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/base/errors.ts'
import { candidates } from '../../core/config/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine } from '../io/process.ts'
import {
  entriesHere,
  leaveRequest,
  type ReloadOutcome,
  type ReloadRequest,
  type RunningServe,
  requestFile,
  serveWithId,
} from '../session/running.ts'
import { trouble } from '../settings/private-file.ts'

/** The values that choose one of several servers. Without any of them, the svc.yaml that commands here use decides. */
export type WhichServe = {
  readonly pid?: number | undefined
  readonly config?: string | undefined
  readonly store?: string | undefined
}

export type ReloadFlags = WhichServe & {
  /** `ReloadRequest` */
  readonly 'empty-include'?: boolean | undefined
}

export type Reloaded = Pick<RunningServe, 'pid' | 'url' | 'configuration'> & Omit<ReloadOutcome, 'refusal'>

/** Milliseconds that a server may take: reading files of a share that is silent ends sooner. */
const patienceMs = 60_000
const lookEveryMs = 50

/**
 * Has the running `svc serve` of this account reload its configuration, and waits for the outcome. Throws Fault
 * `Unreachable` if none runs, `Usage` if several could be meant, `Local` if it refused the configuration or the request
 * cannot be left, `Timeout` without an outcome, and the reason of the signal.
 */
export async function requestReload(
  { 'empty-include': emptyInclude = false, ...which }: ReloadFlags,
  env: ProcessEnvironment,
  signal: AbortSignal,
  waitMs = patienceMs,
): Promise<Reloaded> {
  const home = homeOf(env)
  const serve = meant(entriesHere(home), which, env)
  const { pid, url, configuration } = serve
  leave({ emptyInclude }, serve, home)
  // A reload that is under way may have read the file already. Another one follows it.
  const number = (serve.reloads?.latest ?? 0) + 1
  const ended = await outcome(serve, home, number, { signal, waitMs })
  const { refusal, added, removed, changed, warnings } = ended
  if (refusal) {
    const hints = [...refusal.hints, `The svc serve at ${url} keeps the previous configuration.`]
    throw new Fault('Local', refusal.message, { hints, places: refusal.places })
  }
  return {
    pid,
    url,
    configuration: serveWithId(pid, home)?.configuration ?? configuration,
    added,
    removed,
    changed,
    warnings,
  }
}

/** The one server that is meant. */
function meant(
  { serves, earlier, ignored }: ReturnType<typeof entriesHere>,
  which: WhichServe,
  env: ProcessEnvironment,
): RunningServe {
  const config = which.config ?? env['SVC_CONFIG']
  const store = which.store ?? env['SVC_STORE']
  const fits = (serve: RunningServe): boolean =>
    (which.pid === undefined || serve.pid === which.pid) &&
    (config === undefined || serve.configuration === resolve(config)) &&
    (store === undefined || serve.store === store || serve.store === resolve(store))
  const fitting = serves.filter(fits)
  const own = fitting.length > 1 ? fitting.filter((serve) => usesFileOf(env, serve)) : fitting
  const [first, second] = own.length > 0 ? own : fitting
  const old = earlier.find(fits)
  if (!first && old) throw ofEarlierVersion(old)
  if (!first) throw noneRuns(serves, ignored)
  if (!second) return first
  throw new Fault('Usage', `${fitting.length} svc serve of this account run here: choose one with --pid`, {
    hints: fitting.map(line),
  })
}

/** Whether a server has the svc.yaml that commands with this environment use. */
const usesFileOf = (env: ProcessEnvironment, { configuration }: RunningServe): boolean =>
  candidates({ env, platform: machine.platform, home: homeOf(env) }).some(({ path }) => path === configuration)

const line = ({ pid, url, configuration, store }: RunningServe): string =>
  `--pid ${pid}   ${url}, ${configuration ?? 'without svc.yaml'}, store ${store}`

const ofEarlierVersion = ({ pid, url }: RunningServe): Fault =>
  new Fault('Local', `The svc serve at ${url} cannot reload by this command: an earlier version of svc started it`, {
    hints: [`Restart it: its process is ${pid}. The service of the Debian package: sudo systemctl restart svc`],
  })

function noneRuns(others: readonly RunningServe[], ignored: readonly string[]): Fault {
  if (others.length > 0) {
    return new Fault('Unreachable', 'No such svc serve of this account runs here', {
      hints: ['These run:', ...others.map(line)],
    })
  }
  return new Fault('Unreachable', 'No svc serve of this account runs here', {
    hints: [
      ...ignored.map((why) => `Not believed: ${why}`),
      'To start one: svc serve',
      'The service of the Debian package: sudo systemctl reload svc',
      'One of another account: run this command with sudo -u ACCOUNT',
      'One that cannot write to its home folder, as in a container: kill -HUP PID',
    ],
  })
}

function leave(request: ReloadRequest, { pid }: RunningServe, home: string): void {
  try {
    leaveRequest(pid, home, request)
  } catch (error) {
    throw trouble(requestFile(home, pid), 'written', error)
  }
}

const hasEnded = (url: string): Fault =>
  new Fault('Unreachable', `The svc serve at ${url} has ended`, { hints: ['Start it again: svc serve'] })

/** The outcome of the reload with this number, or of a later one. */
async function outcome(
  { pid, url }: RunningServe,
  home: string,
  number: number,
  { signal, waitMs }: { readonly signal: AbortSignal; readonly waitMs: number },
): Promise<ReloadOutcome> {
  const until = performance.now() + waitMs
  for (;;) {
    const now = serveWithId(pid, home)
    if (!now) throw hasEnded(url)
    const last = now.reloads?.last
    if (last && last.number >= number) return last
    if (performance.now() > until) {
      throw new Fault('Timeout', `The svc serve at ${url} has not reloaded within ${waitMs / 1_000} s`, {
        hints: ['Its log has the outcome later.'],
      })
    }
    await pause(lookEveryMs, undefined, { signal })
  }
}
