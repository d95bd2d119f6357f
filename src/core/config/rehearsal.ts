import { type At, isMap, type Problem, place, readSettings, type SettingsReading } from '../base/settings/index.ts'
import { writeMonitorOfType } from '../checks/engine/index.ts'
import { monitorsNamed, ServerType } from '../protocol/index.ts'
import {
  declarationOf,
  type FaultsNow,
  firstCheck,
  type MonitorFault,
  type RehearsalValues,
  rehearsalSettings,
  rehearsedMonitor,
  type Script,
  type ScriptStep,
  scriptOf,
  sentences,
} from '../watch/rehearsal/index.ts'
import { unknown } from './configured.ts'
import { parseDocument } from './document.ts'
import { type Config, type Placed, refusal } from './load.ts'
import type { TypeConfig, Types } from './types.ts'

/** How mistakes of a script are reported. */
const ofScript = { next: 'Correct the file, then start again', settings: rehearsalSettings }

/**
 * Reads the script of a rehearsal. Throws Fault `Local`, which lists every mistake with its place, as for svc.yaml.
 *
 * @param file for messages
 */
export async function readRehearsal(file: string, text: string, { types }: Pick<Config, 'types'>): Promise<Script> {
  const document = await parseDocument(text)
  const refuse = async (problems: readonly Problem[]): Promise<never> => {
    const placed = problems.map(
      (problem): Placed => ({ ...problem, place: document.placeOf(problem.path), file, text }),
    )
    throw await refusal(file, placed, false, ofScript)
  }
  if (document.problems.length > 0) {
    const placed = document.problems.map((problem): Placed => ({ ...problem, file, text }))
    throw await refusal(file, placed, true, ofScript)
  }
  if (!isMap(document.value)) {
    return await refuse([
      { path: [], message: 'is not a script: write `ends: 10m`, and `steps:` with a list under it' },
    ])
  }
  const context = { env: {}, folder: '.' }
  const { values, problems: mistakes } = readSettings(rehearsalSettings, withTextualHttp(document.value), context)
  if (mistakes.length > 0) return await refuse(mistakes)
  const problems: Problem[] = []
  const reading = { problems, warnings: [], context }
  const steps = stepsOf(values, types, reading, (path) => document.placeOf(path).line)
  if (problems.length > 0) return await refuse(problems)
  return scriptOf(steps, values.ends)
}

/** `http: 503` is a number in YAML. */
function withTextualHttp(raw: Readonly<Record<string, unknown>>): unknown {
  const steps: unknown = raw['steps']
  if (!Array.isArray(steps)) return raw
  const written: readonly unknown[] = steps
  return {
    ...raw,
    steps: written.map((step) =>
      isMap(step) && typeof step['http'] === 'number' ? { ...step, http: String(step['http']) } : step,
    ),
  }
}

type RawStep = RehearsalValues['steps'][number]

function stepsOf(
  { steps, ends }: RehearsalValues,
  types: Types,
  reading: SettingsReading,
  lineOf: (path: Problem['path']) => number,
): readonly ScriptStep[] {
  const all = place(['steps'], reading)
  const read = steps.flatMap((step, index): readonly ScriptStep[] => {
    const at = all.in(index)
    const before = steps[index - 1]
    if (before !== undefined && step.at < before.at)
      at.in('at').report('is before that of the step above: sort the steps')
    if (step.at >= ends) at.in('at').report('is not before `ends:`, so that the step never begins')
    const does = doesOf(step, types, at)
    return does === undefined ? [] : [{ at: step.at, lastsMs: step.for, line: lineOf(['steps', index]), does }]
  })
  if (!read.some(({ does }) => !('ends' in does)) && reading.problems.length === 0) {
    all.report('has no fault: add a step with `monitor:` and `fault:`, or with `http:`')
  }
  return read
}

function doesOf(step: RawStep, types: Types, at: At): ScriptStep['does'] | undefined {
  const { monitor, http, fault, check, message } = step
  if (monitor !== undefined && http !== undefined)
    return at.in('http').report('is there beside `monitor:`: make it a step of its own')
  if (monitor === undefined && http === undefined)
    return at.report('does nothing: add `monitor:` and `fault:`, or `http:`')
  const ends = fault === 'none' || http === 'ok'
  if (ends && step.for !== undefined) return at.in('for').report('has no meaning here, where a fault ends: remove it')
  if (http !== undefined) {
    for (const key of ['fault', 'check', 'message'] as const) {
      if (step[key] !== undefined) at.in(key).report('belongs to a step with `monitor:`: remove it')
    }
    return ends ? { ends: 'http' } : { http: http as '503' }
  }
  const match = monitorIn(monitor ?? '', types, at)
  if (fault === undefined) return at.report('does not say what fails: add `fault: refused`')
  if (!match) return undefined
  const { type, planned } = match
  if (check !== undefined && declarationOf(check, planned.kind) === undefined) {
    const names = planned.kind.checks.map(({ name }) => name)
    const mistake = unknown(`a check of ${planned.name}`, check, names)
    return at.in('check').report(`${mistake}; svc monitors kinds ${planned.kind.name} lists its checks`)
  }
  if (ends) return { ends: { type, monitor: planned.name, check } }
  const own = fault as MonitorFault['fault']
  const text = message ?? `${sentences[own]} (scripted)`
  return {
    monitor: { type, monitor: planned.name, check: check ?? firstCheck(planned.kind), fault: own, message: text },
  }
}

type Planned = TypeConfig['monitors'][number]
type OfType = { readonly type: ServerType; readonly name: string; readonly planned: Planned }

/** The only monitor of that name. */
function monitorIn(written: string, types: Types, at: At): OfType | undefined {
  const all = ServerType.values.flatMap((type): readonly OfType[] =>
    (types[type]?.monitors ?? []).map((planned) => ({ type, name: planned.name, planned })),
  )
  const matches = monitorsNamed(written, all)
  const [only, another] = matches
  if (only && !another) return only
  if (another)
    return at
      .in('monitor')
      .report(`is ambiguous: write ${matches.map((one) => `\`${writeMonitorOfType(one)}\``).join(' or ')}`)
  if (all.length === 0)
    return at.in('monitor').report('is not in svc.yaml, which has no monitors: name the file with --config')
  return at.in('monitor').report(
    `${unknown(
      'a monitor of svc.yaml',
      written,
      all.flatMap((one) => [writeMonitorOfType(one), one.name]),
    )}; svc monitors list shows them`,
  )
}

/** How often a rehearsal evaluates the script for each monitor, in milliseconds. Nothing is contacted. */
const every = { Standard: 10_000, Advanced: 30_000 }

/**
 * The configuration of a rehearsal: the monitors without their settings, and of the rest only what shapes the answers.
 * Receivers, pings, witnesses, drills, providers, programs and silences are not taken over, so that nothing can be
 * contacted, and no fault is silent.
 */
export function rehearsedConfig({ origin, types, serve }: Config, faultsNow: FaultsNow): Config {
  const rehearsed: { [T in ServerType]?: TypeConfig } = {}
  for (const type of ServerType.values) {
    const own = types[type]
    if (!own) continue
    const { monitors, confirm, flapping } = own
    rehearsed[type] = {
      monitors: monitors.map((monitor) => rehearsedMonitor(type, monitor, faultsNow)),
      ...(confirm === undefined ? {} : { confirm }),
      ...(flapping === undefined ? {} : { flapping }),
      host: false,
    }
  }
  const { witness: _, ping, audit, refresh, basic, url, peer, ...shapes } = serve
  return {
    origin,
    types: rehearsed,
    serve: { ...shapes, every, witness: [], refresh: 'any', basic: false },
    warnings: [],
  }
}
