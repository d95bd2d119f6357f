import { Fault } from '../../core/base/errors.ts'
import { showDuration } from '../../core/base/format.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import { dependenciesOf } from '../../core/checks/plan/index.ts'
import { isBad, worst } from '../../core/checks/reports/index.ts'
import type { Config, LoadedConfig } from '../../core/config/index.ts'
import { type ExecutionMode, monitorsNamed, ownNameIn, type ServerType, writeNamed } from '../../core/protocol/index.ts'
import type { Trial } from '../../core/protocol/service/service.ts'
import { openCore } from '../../core/service/open.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { packageJson, thisMachine } from '../io/process.ts'
import type { ListOutput } from '../render/list.ts'
import type { Mark } from '../render/table.ts'
import { waysToConfigure } from '../session/first-config.ts'
import { accountFiles, configuration, mistakesOf, storePath, usedStores } from '../session/session.ts'
import { findings } from './lists.ts'

export type NamedMonitor = { readonly type: ServerType; readonly monitor: string }

/**
 * Finds a configured monitor by one of its names. Throws `Fault` Usage, with the nearest name and all names, for an
 * unknown or ambiguous name.
 */
export function monitorNamed(
  config: Config,
  requestedName: string,
  type: ServerType | undefined,
  env: ProcessEnvironment,
): NamedMonitor {
  const all = Object.entries(config.types).flatMap(([name, entry]) =>
    entry.monitors.map((monitor) => ({ type: name as ServerType, name: monitor.name })),
  )
  const here = all.filter((one) => type === undefined || one.type === type)
  const matches = monitorsNamed(requestedName, here)
  const [only, another] = matches
  if (only && !another) return { type: only.type, monitor: only.name }
  if (another) {
    throw new Fault('Usage', `"${requestedName}" names several monitors: ${matches.map(writeNamed).join(', ')}`, {
      hints: ['Put the type in front, and use the full name: svc monitors test "TYPE/KIND NAME"'],
    })
  }
  const where = type === undefined ? '' : ` of ${type}`
  if (here.length === 0) {
    throw new Fault('Usage', `no monitor${where} is configured; there is no "${requestedName}"`, {
      hints: ['svc monitors kinds   lists the kinds of monitors', ...waysToConfigure(config.origin, env)],
    })
  }
  const names = here.map(({ name }) => name)
  const nearest = didYouMean(requestedName, [...names, ...names.map(ownNameIn)])
  throw new Fault('Usage', `no monitor${where} is called "${requestedName}"`, {
    hints: [
      ...(nearest === undefined ? [] : [`Did you mean "${nearest}"?`]),
      `Monitors of ${config.origin ?? 'svc.yaml'}: ${names.join(', ')}`,
    ],
  })
}

/** Refuses an entry with mistakes: there is nothing to run. */
function refuseInvalid({ invalidEntries }: LoadedConfig, { type, monitor }: NamedMonitor): void {
  const entry = invalidEntries.find((one) => one.type === type && one.name === monitor)
  if (!entry) return
  const [first = '', ...more] = entry.lines
  throw new Fault('Local', first, {
    places: entry.mistakes,
    hints: [...more, 'Correct the file, then: svc monitors validate'],
  })
}

export type MonitorTrial = NamedMonitor & {
  readonly mode: ExecutionMode
  readonly trial: Trial
  /** The monitors on which it depends, which do not run. */
  readonly dependsOn: readonly string[]
  /** The svc.yaml that has it. */
  readonly origin: string | undefined
  /** The mistakes in other entries of svc.yaml, one line each. */
  readonly mistakes: readonly string[]
}

type TrialFlags = {
  readonly type?: ServerType | undefined
  readonly mode?: ExecutionMode | undefined
  readonly timeout?: number | undefined
  readonly config?: string | undefined
  readonly store?: string | undefined
}

/** Runs a single monitor of svc.yaml, in the deepest mode. Throws like `monitorNamed`. */
export async function tryMonitor(
  name: string,
  flags: TrialFlags,
  env: ProcessEnvironment,
  signal: AbortSignal,
): Promise<MonitorTrial> {
  const config = await configuration(flags, env, { tolerant: true })
  const target = monitorNamed(config, name, flags.type, env)
  refuseInvalid(config, target)
  const { mode = 'Advanced' } = flags
  const { trial, runtime } = await openCore({
    version: packageJson().version,
    config,
    store: await storePath(flags, env),
    env,
    shared: false,
    details: 'anyone',
    ...accountFiles(env),
    usedStores: usedStores(env),
  })
  try {
    return {
      ...target,
      origin: config.origin,
      mode,
      dependsOn: (config.types[target.type]?.monitors ?? []).flatMap((one) =>
        one.name === target.monitor ? dependenciesOf(one, target.type) : [],
      ),
      mistakes: mistakesOf(config),
      trial: await trial({ ...target, mode, timeoutMs: flags.timeout }, signal),
    }
  } finally {
    await runtime.close()
  }
}

/** The worst level of the results. */
const levelOf = ({ results }: Trial): Mark => worst(results.map(({ level }) => level))

/** Whether it is healthy, with or without warnings. */
export const hasPassed = (trial: Trial): boolean => !isBad(levelOf(trial))

const verdicts: Record<Mark, string> = {
  ok: 'is healthy',
  warn: 'is healthy, with warnings',
  'not checked': 'is not fully checked',
  fail: 'failed',
}

export function renderTrial({ type, monitor, mode, trial }: MonitorTrial, output: ListOutput): string {
  const mark = levelOf(trial)
  const attempts = trial.attempts > 1 ? `, attempt ${trial.attempts}` : ''
  const sentence = `${monitor} ${verdicts[mark]}: ${type}, ${mode}, ${showDuration(trial.durationMs)}${attempts}`
  const durationMs = Math.round(trial.durationMs * 10) / 10
  const around = { target: thisMachine, type, monitor, mode, durationMs, attempts: trial.attempts }
  return findings.render(trial.results, around, { ...output, headline: { mark, sentence } })
}
