import { checksOn, fail, machineKind, ok, type Result, showThreshold, warn } from '../../engine/index.ts'
import { type ConfiguredFiles, type FileStatus, isOnShare } from '../../files/index.ts'
import { show, showDuration } from '../../format.ts'
import { sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { SettingsSpec } from '../../settings/index.ts'
import { type Ended, plainEnvironment, runProgram } from '../../system/run-program.ts'
import { maxFigures, type PluginFigure, type PluginFigures, readFigures, splitOutput } from './performance-data.ts'

/** The `exec` settings of the system's svc.yaml. */
export type ExecConfig = {
  /** Folders whose programs may be run. Empty: `exec` is off. */
  readonly allow: readonly string[]
  /** Why it is off, as a sentence without a full stop. */
  readonly off?: string | undefined
}

declare module '../../engine/index.ts' {
  interface Services {
    /** The programs that may be run. Absent: none. */
    readonly exec: ExecConfig
  }
}

/**
 * The real path of a program that may run: it lies in an allowed folder, and only root and this account can change it
 * or its parent folders. Otherwise throws ProbeError `data` with the reason.
 */
export async function admitted(command: string, exec: ExecConfig | undefined, files: ConfiguredFiles): Promise<string> {
  const paths = await import('node:path')
  if (!paths.isAbsolute(command)) throw refused(`${command} is not an absolute path`)
  if (!exec || exec.allow.length === 0) {
    throw refused(`exec is off: ${exec?.off ?? "only the system's svc.yaml can turn it on"}`)
  }
  const real = await files('realPath', { path: command }).catch((error: unknown) => {
    throw refused(`${command} ${missing(error) ? 'does not exist' : 'cannot be accessed'}`)
  })
  // The target of a link is what runs, so the target must be in an allowed folder.
  const folder = await folderOf(real, exec.allow, files)
  if (folder === undefined) {
    const leads = real === command ? '' : ` leads to ${real}, which`
    throw refused(`${command}${leads} is in no folder that the system's svc.yaml allows: ${exec.allow.join(', ')}`)
  }
  // Anyone who can write to the program, its folder or a parent up to the allowed folder could choose the program.
  for (let place = real; ; place = paths.dirname(place)) {
    const stats = await files('status', { path: place })
    if (place === real && !stats.isFile) throw refused(`${command} is not a program`)
    const why = changeable(stats)
    if (why !== undefined) throw refused(`${place} ${why}: not run`)
    if (place === folder || place === paths.dirname(place)) return real
  }
}

/** The allowed folder that a path is in. Folders on shares come last, so that a local program does not wait for them. */
async function folderOf(path: string, allowed: readonly string[], files: ConfiguredFiles): Promise<string | undefined> {
  for (const folder of allowed.toSorted((a, b) => Number(isOnShare(a)) - Number(isOnShare(b)))) {
    const real = await files('realPath', { path: folder }).catch(() => undefined)
    if (real !== undefined && path.startsWith(real.endsWith('/') ? real : `${real}/`)) return real
  }
  return undefined
}

function changeable({ uid, mode }: FileStatus): string | undefined {
  const account = process.geteuid?.()
  if (account === undefined) return undefined
  if (uid !== 0 && uid !== account) return `belongs to another account (uid ${uid})`
  return (mode & 0o022) === 0 ? undefined : `is writable by others (mode ${(mode & 0o7777).toString(8)})`
}

const missing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
const refused = (why: string): ProbeError => new ProbeError('data', why)

/** Maximum bytes kept of stdout and of stderr, and the maximum number of further lines that become details. */
const keep = 64 * 1024
const maxDetails = 10

const commandSettings = {
  command: {
    type: 'text',
    observed: true,
    required: true,
    doc: "Absolute path of the program, in a folder that the system's svc.yaml allows",
  },
  args: {
    type: 'texts',
    observed: true,
    allowsEmpty: true,
    doc: 'Arguments, passed unchanged and without a shell; do not put a password here',
  },
} as const satisfies SettingsSpec

export const result = checksOn<object>()({
  depth: 'Basic',
  results: {
    result: 'The exit code is 0 (ok), 1 (warning), 2 (failure) or 3 (unknown)',
    figure: 'A figure of its performance data, by label; informational',
  },
  settings: commandSettings,
  async observe(_, { command, args = [] }, context) {
    context.step('result', command)
    const file = await admitted(command, context.services.exec, context.files)
    const start = context.now()
    const program = { file, args, env: plainEnvironment(), keep, isOnShare: isOnShare(file) }
    const ended = await runProgram(program, context.signal)
    return { ...ended, ms: context.now() - start }
  },
  evaluate(ended, { command }) {
    const { lines, data } = splitOutput(ended.stdout)
    const cut = ended.more && !ended.stdout.endsWith('\n')
    // A program that did not exit as a plug-in does may have stopped in the middle of a figure.
    const { figures, more } = isVerdict(ended.code) ? readFigures(data, cut) : noFigures
    return [stateOf(ended, lines, more, command), ...figures.map(figureResult)]
  },
})

const noFigures: PluginFigures = { figures: [], more: false }
const isVerdict = (code: number | undefined): boolean => code !== undefined && code <= 3

/** The meaning of the exit code, in the words of the first line. */
function stateOf(
  { code, signal, stderr, more, ms }: Ended & { readonly ms: number },
  lines: readonly string[],
  moreFigures: boolean,
  command: string,
): Result<'result'> {
  const [first = '', ...long] = lines.map((line) => sanitize(line))
  const errors = stderr
    .split(/\r?\n/)
    .map((line) => sanitize(line))
    .filter((line) => line !== '')
  const others = [...long.filter((line) => line !== ''), ...errors]
  const cut = [
    ...(more ? ['(the rest of the output was discarded)'] : []),
    ...(moreFigures ? [`(figures beyond the first ${maxFigures} were discarded)`] : []),
  ]
  const about: Partial<Result> = {
    measurement: { value: ms, unit: 'milliseconds' },
    details: [...others.slice(0, maxDetails), ...cut],
  }
  const [error] = errors
  const message = first !== '' ? first : error === undefined ? 'no output' : `no output; on standard error: ${error}`
  if (code === 0) return ok('result', `${message} (after ${showDuration(ms)})`, about)
  if (code === 1) return warn('result', message, about)
  if (code === 2) return fail('result', 'threshold', message, about)
  if (code === 3) return fail('result', 'data', `unknown: ${message}`, about)
  const how = signal === undefined ? `exited with ${code}` : `was ended by ${signal}`
  return fail('result', 'protocol', `${command} ${how}, which is not a status of a plug-in (0 to 3): ${message}`, about)
}

/** Shows the plug-in's own limits beside a figure without evaluating them: its exit code already did that. */
function figureResult({ label, measurement, foreignUnit }: PluginFigure): Result<'figure'> {
  const { value, unit, warn: warnAt, limit, bound } = measurement
  const format = (figure: number): string =>
    foreignUnit === undefined
      ? show(figure, unit === 'milliseconds' ? 'duration' : unit)
      : `${show(figure, 'count')} ${foreignUnit}`
  const limits = showThreshold({ warn: warnAt, limit }, format, bound ?? 'atMost')
  const ofPlugin = limits === '' ? '' : ` (plug-in: ${limits})`
  return ok('figure', `${label} ${format(value)}${ofPlugin}`, { subject: label, measurement })
}

/**
 * Runs a program that follows the Nagios plug-in conventions: the exit code decides the status, and the first line is
 * the message. Each figure after the bar becomes a result. Disabled unless the system's svc.yaml allows the folder.
 * Never uses a shell.
 */
export default machineKind({
  name: 'exec',
  runsPrograms: true,
  title: 'A program in an allowed folder (a Nagios plug-in) reports success',
  settings: {},
  open: () => ({}),
  checks: [result],
})
