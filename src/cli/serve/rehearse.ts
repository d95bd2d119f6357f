import { exits, Fault } from '../../core/base/errors.ts'
import { fileProblem } from '../../core/base/file-errors.ts'
import { readNamed } from '../../core/base/files/index.ts'
import { type Config, loadRehearsal } from '../../core/config/index.ts'
import { markText } from '../../core/protocol/index.ts'
import type { Log, StartOptions } from '../../core/server/index.ts'
import {
  Attendance,
  describeSubject,
  type FaultFinding,
  mustExit,
  type RehearsalPace,
  type Script,
  stateAt,
} from '../../core/watch/rehearsal/index.ts'

/** A script is short. */
const maxScript = 1024 * 1024

/** Flags that have no meaning in a rehearsal, and why. */
const contradictions = {
  store: 'a rehearsal opens no store',
  only: 'a rehearsal has no sign-in, roles or store in any case',
  'bootstrap-admin': 'a rehearsal has no users',
  'bootstrap-password-file': 'a rehearsal has no users',
} as const

/** Throws Usage for a flag that a rehearsal cannot have, and for the port of a server that is not one. */
export function refuseFlags(
  flags: Readonly<Record<string, unknown>> & { readonly port: number },
  productionPort: number,
): void {
  for (const [flag, why] of Object.entries(contradictions)) {
    if (flags[flag] === undefined) continue
    throw new Fault('Usage', `--${flag} cannot be used with --rehearse: ${why}`, { hints: [`Omit --${flag}.`] })
  }
  if (flags.port !== productionPort) return
  throw new Fault(
    'Usage',
    `--rehearse needs a port of its own: gates and dashboards expect production at ${productionPort}`,
    {
      hints: ['Choose another one:  --port 8791', 'Or a free one:       --port 0 --port-file FILE'],
    },
  )
}

/** Reads the script. Throws Local for a file that cannot be read, and for mistakes, with their lines. */
export async function readScript(file: string, config: Config): Promise<Script> {
  let text: string
  try {
    text = await readNamed(file, maxScript)
  } catch (error) {
    throw new Fault('Local', `--rehearse: ${file} ${fileProblem(error)}`)
  }
  return await (await loadRehearsal()).readRehearsal(file, text, config)
}

/** A rehearsal of `svc serve`. */
export type Rehearsal = {
  /** The configuration that the server uses instead of that of svc.yaml. */
  readonly config: Config
  readonly server: NonNullable<StartOptions['rehearsal']>
  /** Aborts when the process has to end. */
  readonly ends: AbortSignal
  /** Begins the script: called when the server answers. */
  readonly begin: (log: Log) => void
  /**
   * Ends it, and logs what is known. The exit code: 0 if every fault was active for its full time and somebody asked
   * meanwhile, otherwise 10.
   */
  readonly finish: () => number
}

/** Paths that show the faults of monitors. Others answer the same whatever fails. */
const showsMonitors = (path: string): boolean =>
  /^\/(?:$|board|metrics|health|history|impact|(?:json|csv|jsv|api)\/)/i.test(path)

/** Drives a script by the clock. */
export async function rehearse(
  script: Script,
  config: Config,
  { monotonic = () => performance.now(), wall = Date.now, beatMs = 500 }: Partial<RehearsalPace> = {},
): Promise<Rehearsal> {
  let began: { readonly monotonic: number; readonly wall: number } | undefined
  let timer: NodeJS.Timeout | undefined
  let log: Log = () => {}
  /** The later of both clocks: while the machine sleeps, one of them stands still. */
  const elapsed = (): number => (began ? Math.max(monotonic() - began.monotonic, wall() - began.wall) : -1)
  const attendance = new Attendance(script)
  const ends = new AbortController()
  const endLines = new Set<unknown>()
  const startLines = new Set<unknown>()
  let isOver = false
  const currentState = () => stateAt(script, elapsed())

  const report = (): void => {
    const at = elapsed()
    for (const fault of script.faults) {
      if (startLines.has(fault) || at < fault.from) continue
      startLines.add(fault)
      log({ level: 'info', msg: `${describeSubject(fault.subject)} begins (line ${fault.line})` })
    }
    for (const finding of attendance.findings(at)) {
      if (endLines.has(finding.fault)) continue
      endLines.add(finding.fault)
      reportFinding(finding, log)
    }
    if (!isOver && at >= script.endsMs) {
      isOver = true
      log({ level: 'info', msg: 'the script is over: every request gets 503 "drill over"' })
    }
    if (mustExit(script, at)) ends.abort(new Error('the rehearsal is over'))
  }

  return {
    config: (await loadRehearsal()).rehearsedConfig(config, (type, monitor) => currentState().of(type, monitor)),
    server: {
      fault: () => currentState().http,
      noteRequest: ({ address, agent, method, path }) =>
        attendance.note({ address, agent, what: `${method} ${path}`, showsMonitors: showsMonitors(path) }, elapsed()),
    },
    ends: ends.signal,
    begin: (to) => {
      log = (entry) => to({ ...entry, msg: markText(entry.msg) })
      began = { monotonic: monotonic(), wall: wall() }
      log({
        level: 'warn',
        msg: `this server rehearses for ${Math.round(script.endsMs / 1_000)} s (faults: ${script.faults.length}): no monitor runs, nothing is stored, nobody is notified`,
      })
      timer = setInterval(report, beatMs)
    },
    finish: () => {
      clearInterval(timer)
      report()
      const isComplete = attendance.isComplete(elapsed())
      if (isComplete) {
        log({ level: 'info', msg: 'every fault of the script was polled' })
        return exits.ok.code
      }
      const missed = script.faults.filter((fault) => !endLines.has(fault))
      for (const { subject, line } of missed) {
        log({
          level: 'warn',
          msg: `${describeSubject(subject)} (line ${line}) was not active for its full time: not proven`,
        })
      }
      log({
        level: 'warn',
        msg: 'the rehearsal is incomplete: not every fault was active for its full time and polled',
      })
      return exits.partial.code
    },
  }
}

function reportFinding({ fault, what, pollers, requests }: FaultFinding, log: Log): void {
  if (requests === 0) {
    log({
      level: 'warn',
      msg: `nobody asked while ${what} was active (line ${fault.line}): nothing is proven by it`,
    })
    return
  }
  const noun = requests === 1 ? 'request' : 'requests'
  log({ level: 'info', msg: `${what} ends (line ${fault.line}): ${requests} ${noun} meanwhile` })
  for (const { address, agent, what: request, first, last, count } of pollers) {
    const times = count === 1 ? `at ${seconds(first)}` : `${count} times from ${seconds(first)} to ${seconds(last)}`
    log({ level: 'info', msg: `${address} asked ${request} ${times}`, address, agent })
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
