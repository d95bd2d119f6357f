import { readFileSync } from 'node:fs'
import { exits, Fault } from '../../core/base/errors.ts'
import { count } from '../../core/base/format.ts'
import { parseOpenFilesLimit } from '../../core/base/system/processes.ts'
import { read } from '../../core/checks/reports/index.ts'
import type { ExecutionMode } from '../../core/protocol/index.ts'
import {
  askHealth,
  entryOf,
  failedOutcome,
  formats,
  type HealthOutcome,
  type HealthQuestion,
} from '../health/health.ts'
import { waitingText } from '../health/outstanding.ts'
import type { Detail } from '../health/text.ts'
import { limitGarbage } from '../io/heap.ts'
import type { Io } from '../io/io.ts'
import { columnsOf, painter, progress } from '../io/terminal.ts'
import { marks } from '../render/table.ts'
import { FleetClients, TaskLimit } from './clients.ts'
import { FleetFold } from './fold.ts'
import { type FleetPresentation, fleetSink } from './sink.ts'
import { type FleetFlags, type FleetTarget, type FleetTargets, fleetTargets } from './targets.ts'

export type FleetRun = {
  readonly flags: FleetFlags & { readonly mode?: ExecutionMode | undefined; readonly quiet: boolean }
  readonly question: HealthQuestion
  readonly as: FleetPresentation
  readonly io: Io
  /** Writes a line for people to standard error, unless they want none. */
  readonly say: (line: string) => void
}

/** Names that are looked up at once. Names that do not resolve must not delay those that do. */
const threads = 128
/** Descriptors for everything but requests: files, streams, and sockets of look-ups. */
const reserved = 128
/** A request, and the question whether its server lives, which has a connection of its own. */
const perRequest = 2
/** More at once gain nothing (bench/results/fleet.md). */
const usualAtOnce = 256
/** Fewer servers leave too little garbage for frequent collections to pay. */
const manyTargets = 2_000
const narrowest = 24

/**
 * Checks many servers, some of them at once, and prints one answer. Returns the exit code. What a server says is reduced
 * to what the format needs as soon as it arrives.
 */
export async function checkFleet(run: FleetRun, signal: AbortSignal): Promise<number> {
  const { flags, io, say, as } = run
  io.reserveThreads(threads)
  const fleet = await fleetTargets(flags, io, say)
  if (fleet.targets.length > manyTargets) limitGarbage()
  const atOnce = requestsAtOnce(flags['at-once'])
  const began = io.clock.elapsed()
  const fold = new FleetFold(fleet, { listsHealthy: as.detail === 'verbose' })
  const sink = fleetSink(as, io)
  await askAll(run, fleet, atOnce, { fold, sink }, signal)
  const { text, form, exitCode } = await sink.end()
  const elapsed = io.clock.elapsed() - began
  const tableOn = (screen: Io['stdout'], detail: Detail): string =>
    fold.render(detail, elapsed, {
      width: Math.max(narrowest, columnsOf(screen, io.env)),
      marks: marks(screen.unicode),
      paint: painter(screen.colour),
    })
  if (as.output === 'table') io.stdout.write(`${tableOn(io.stdout, as.detail)}\n`)
  else if (text !== '') io.stdout.write(text.endsWith('\n') ? text : `${text}\n`, form)
  const code = fold.exitCode
  if (code !== exits.ok.code && formats[as.output].logsFailures) say(tableOn(io.stderr, 'reasons'))
  for (const warning of fleet.warnings) say(`Warning: ${warning}`)
  return exitCode ?? code
}

/** How many requests run at once: as many as the command line says, or as there are descriptors for. */
function requestsAtOnce(number: number | undefined): number {
  const limit = openFilesLimit()
  const most = Math.max(1, Math.floor((limit - reserved) / perRequest))
  if (number === undefined) return Math.min(usualAtOnce, most)
  if (number <= most) return number
  const files = number * perRequest + reserved
  throw new Fault('Usage', `--at-once ${number} needs ${files} open files, and this process may have ${limit}`, {
    hints: [`Raise the limit (ulimit -n ${files}), or write --at-once ${most} or less.`],
  })
}

/** 1,024 where nobody says it. */
function openFilesLimit(): number {
  try {
    return parseOpenFilesLimit(readFileSync('/proc/self/limits', 'utf8')) ?? Number.POSITIVE_INFINITY
  } catch {
    return 1_024
  }
}

type Receivers = { readonly fold: FleetFold; readonly sink: ReturnType<typeof fleetSink> }

async function askAll(
  run: FleetRun,
  { targets }: FleetTargets,
  atOnce: number,
  receivers: Receivers,
  signal: AbortSignal,
): Promise<void> {
  const { io, flags, say } = run
  // Ends all others when one ends with a defect.
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  const clients = new FleetClients(flags, io, new TaskLimit(atOnce))
  const out = outstanding(targets, io)
  const display = progress(`Checking ${count(targets.length, 'server')}`, !flags.quiet, io)
  const unmatched: Answered[] = []
  let next = 0
  const work = async (): Promise<void> => {
    while (next < targets.length) {
      const at = next
      next += 1
      const target = targets[at] as FleetTarget
      out.begin(target.name)
      const outcomes = await askOne(run, target, clients, until)
      out.end(target.name, outcomes)
      if (outcomes.every(({ fault }) => fault?.details.nothingSelected)) unmatched.push({ at, target, outcomes })
      else await receive(run, { at, target, outcomes }, receivers)
    }
  }
  try {
    display.update(out.text)
    let turn = Promise.resolve()
    const begin = (): Promise<void> => {
      const worker = turn.then(work)
      turn = turn.then(nextTurn)
      return worker
    }
    await Promise.all(Array.from({ length: Math.min(atOnce, targets.length) }, begin))
  } finally {
    stop.abort()
    display.stop()
  }
  // As for the types of one server: where another one has what --only and --skip select, these are left out.
  if (receivers.fold.hasAnswer) {
    if (unmatched.length > 0) say(`Note: --only and --skip select nothing at ${count(unmatched.length, 'server')}`)
  } else for (const answered of unmatched) await receive(run, answered, receivers)
}

/**
 * One server begins in each turn of the event loop. Requests that leave together are answered together, and then wait
 * for each other's answers to be read, round after round.
 */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

type Answered = {
  readonly at: number
  readonly target: FleetTarget
  readonly outcomes: readonly HealthOutcome[]
}

async function askOne(
  { flags, question }: FleetRun,
  target: FleetTarget,
  clients: FleetClients,
  signal: AbortSignal,
): Promise<readonly HealthOutcome[]> {
  try {
    // Holds nothing open between two requests.
    const session = await clients.open(target)
    const { requested } = question.types
    const types = { ...question.types, requested: requested.length > 0 ? requested : (target.types ?? []) }
    const own = { ...question, types, mode: modeOf(flags, target) }
    return (await askHealth(session, own, { signal, repeatsRefused: false })).outcomes
  } catch (error) {
    signal.throwIfAborted()
    return [failedOutcome('all', error)]
  }
}

const modeOf = ({ mode }: FleetRun['flags'], target: FleetTarget): ExecutionMode => mode ?? target.mode ?? 'Standard'

async function receive(
  { flags }: FleetRun,
  { at, target, outcomes }: Answered,
  { fold, sink }: Receivers,
): Promise<void> {
  const as = { target: target.name, mode: modeOf(flags, target) }
  const entries = await Promise.all(
    outcomes.map(async (outcome) => ({ ...(await entryOf(outcome, as)), IsOfMany: true as const })),
  )
  fold.add(target, entries.map(read))
  await sink.add({ at, outcomes, entries, ...as })
}

/** Milliseconds before a terminal names what is out. */
const delayMs = 1_000

/** Follows which servers are out, for the progress on a terminal: `text` has first those with a request. */
function outstanding(targets: readonly FleetTarget[], { clock, stderr }: Io) {
  const began = clock.elapsed()
  const current = new Set<string>()
  let [done, failed] = [0, 0]
  return {
    begin: (name: string) => void current.add(name),
    end: (name: string, outcomes: readonly HealthOutcome[]) => {
      current.delete(name)
      done += 1
      if (outcomes.some(({ exitCode }) => exitCode !== exits.ok.code)) failed += 1
    },
    text: (columns: number): string => {
      const names = [...current, ...targets.slice(done + current.size).map(({ name }) => name)]
      const total = targets.length
      if (names.length === 0 || clock.elapsed() - began < delayMs) return `Checking ${count(total, 'server')}`
      const waiting = { names, total, unit: 'servers', ...(failed === 0 ? {} : { failed }) } as const
      return waitingText(waiting, columns, stderr.unicode ? '…' : '...')
    },
  }
}
