import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import { writeMonitorOfType } from '../../core/checks/engine/index.ts'
import { configurableKinds, monitorName } from '../../core/checks/plan/index.ts'
import { type LoadedConfig, loadEdit } from '../../core/config/index.ts'
import type { ServerType } from '../../core/protocol/index.ts'
import { reasonToWait } from '../../core/watch/configuration/index.ts'
import { unknownName, variable } from '../command/flags.ts'
import { leaveSignalsTo, spawnOn } from '../io/command-child.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { type ConfigChange, configurationWith, textToChange, writeChange } from '../session/config-file.ts'
import { configuration } from '../session/session.ts'
import { monitorNamed, type NamedMonitor } from './monitor-test.ts'

export type EntryChange = NamedMonitor & { readonly change: ConfigChange }

type Kind = Awaited<ReturnType<typeof configurableKinds>>[number]
type Entry = Readonly<Record<string, string | number>> & { readonly kind: string; readonly name: string }

/**
 * The entry for a new monitor. Throws `Fault` Usage for an unknown kind, and for a target that the kind has no setting for.
 *
 * @example
 * ```ts
 * await entryFor('tcp', 'db1:5432', {}) // { type: 'App', entry: { kind: 'tcp', name: 'db1', host: 'db1', port: 5432 } }
 * ```
 */
export async function entryFor(
  kindName: string,
  target: string,
  { type, name }: { readonly type?: ServerType | undefined; readonly name?: string | undefined },
): Promise<{ readonly type: ServerType; readonly entry: Entry }> {
  const [kinds, { typeOfKind }] = await Promise.all([configurableKinds(), loadEdit()])
  const kind = kinds.find((one) => one.name === kindName)
  if (!kind) {
    const names = kinds.map((one) => one.name)
    throw unknownName('kind', kindName, names, 'Kinds')
  }
  const { label, settings } = targetOf(kind, target)
  return { type: type ?? typeOfKind(kind.name), entry: { kind: kind.name, name: name ?? label, ...settings } }
}

/** The settings that a target stands for, and the name that it gives. */
function targetOf(
  { name, settings: spec }: Kind,
  target: string,
): { readonly label: string; readonly settings: Readonly<Record<string, string | number>> } {
  const url = target.includes('://') && URL.canParse(target) ? new URL(target) : undefined
  if (Object.hasOwn(spec, 'url')) return { label: url?.hostname || target, settings: { url: target } }
  if (Object.hasOwn(spec, 'host')) {
    const written = url?.host ?? target
    const [, bracketed, plain = written, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(written) ?? []
    const host = bracketed ?? plain
    return { label: host, settings: { host, ...(port === undefined ? {} : { port: Number(port) }) } }
  }
  const [setting, ...more] = Object.entries(spec).flatMap(([key, { required }]) => (required ? [key] : []))
  if (setting === undefined || more.length > 0) {
    throw new Fault('Usage', `svc monitors add cannot read a TARGET for the kind ${name}`, {
      hints: [`svc monitors kinds ${name}   lists its settings, for an entry of svc.yaml`],
    })
  }
  return { label: url?.hostname || basename(target), settings: { [setting]: target } }
}

/** The change of svc.yaml that adds an entry. Throws `Fault` Conflict for a name that there is already. */
export async function addition(
  { origin, types }: LoadedConfig & { readonly origin: string },
  type: ServerType,
  entry: Entry,
): Promise<EntryChange> {
  const monitor = monitorName(entry.kind, entry.name)
  if (types[type]?.monitors.some((one) => one.name === monitor)) {
    throw new Fault('Conflict', `${type} already has a monitor "${monitor}"; nothing was written`, {
      hints: ['Give another name: --name NAME', `Or change that one: svc monitors edit "${type}/${monitor}"`],
    })
  }
  const before = await textToChange(origin)
  return { type, monitor, change: { path: origin, before, after: await withEntry(before, type, entry) } }
}

/** A text of svc.yaml with one entry more. */
export async function withEntry(text: string, type: ServerType, entry: Entry): Promise<string> {
  const { listOfType, withItem } = await loadEdit()
  return await withItem(text, await listOfType(text, type), entry)
}

/** The change that removes the entry of a monitor, from the file that has it. */
export async function removal(
  name: string,
  flags: { readonly type?: ServerType | undefined; readonly config?: string | undefined },
  env: ProcessEnvironment,
): Promise<EntryChange> {
  const { path, before, at, type, monitor } = await entryNamed(name, flags, env)
  const { withoutItem } = await loadEdit()
  return { type, monitor, change: { path, before, after: await withoutItem(before, at) } }
}

/** Why `svc serve` does not put a removal into force by itself, if it does not. `types`: what is left. */
export function reasonToWaitFor({ type, monitor }: NamedMonitor, types: LoadedConfig['types']): string | undefined {
  const left = Object.values(types).reduce((sum, { monitors }) => sum + monitors.length, 0)
  return reasonToWait({ removed: [writeMonitorOfType({ type, name: monitor })], of: left + 1, ends: [], receivers: [] })
}

/** The file that has the entry of a monitor, and its place there. Throws like `monitorNamed`. */
async function entryNamed(
  name: string,
  flags: { readonly type?: ServerType | undefined; readonly config?: string | undefined },
  env: ProcessEnvironment,
) {
  const config = await configuration(flags, env, { tolerant: true })
  const { type, monitor } = monitorNamed(config, name, flags.type, env)
  const { pathOfMonitor, lineAt } = await loadEdit()
  for (const path of [config.origin ?? '', ...config.included]) {
    const before = await textToChange(path)
    const at = await pathOfMonitor(before, type, monitor)
    if (at) return { type, monitor, path, before, at, line: await lineAt(before, at) }
  }
  throw new Fault('Usage', `${monitor} has no entry of its own: a profile of ${config.origin} makes it`, {
    hints: [`Edit the file: ${config.origin}`],
  })
}

/** Throws the mistakes of a changed configuration, before anything is written. */
export async function demandValid(
  change: ConfigChange,
  flags: { readonly config?: string | undefined },
  env: ProcessEnvironment,
): Promise<LoadedConfig> {
  try {
    return await configurationWith(change, flags, env)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { hints = [], ...details } = error.details
    const others = hints.filter((hint) => !hint.startsWith('Correct the file'))
    throw new Fault(error.fault, error.message, { ...details, hints: [...others, 'Nothing was written.'] })
  }
}

/** Editors that take the line as `+LINE`. */
const takesLine = /^(?:vi|vim|nvim|nano|emacs|emacsclient|micro|joe|mg|ne|kak)$/

/**
 * Opens a copy of the file that has a monitor in the editor of the person, and replaces the file with it once it is valid. `again` is asked with the mistakes of the copy:
 * whether to edit it once more. Resolves with the change. Throws `Fault`, and leaves the copy where it has a mistake.
 */
export async function edition(
  name: string,
  flags: { readonly type?: ServerType | undefined; readonly config?: string | undefined },
  {
    io,
    signal,
    again,
  }: { readonly io: Io; readonly signal: AbortSignal; readonly again: (fault: Fault) => Promise<boolean> },
): Promise<EntryChange> {
  const { path, before, line, type, monitor } = await entryNamed(name, flags, io.env)
  const copy = join(mkdtempSync(join(tmpdir(), 'svc-edit-')), basename(path))
  writeFileSync(copy, before, { mode: 0o600 })
  const discard = (): void => rmSync(dirname(copy), { recursive: true, force: true })
  for (;;) {
    await openEditor(copy, line, io, discard)
    signal.throwIfAborted()
    const change = { path, before, after: readFileSync(copy, 'utf8') }
    try {
      if (change.after !== before) {
        await demandValid(change, flags, io.env)
        signal.throwIfAborted()
        writeChange(change)
      }
      discard()
      return { type, monitor, change }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (error.fault !== 'Conflict' && (await again(error))) continue
      const hints = [...(error.details.hints ?? []), `The edited text is in ${copy}`]
      throw new Fault(error.fault, error.message, { ...error.details, hints })
    }
  }
}

async function openEditor(copy: string, line: number, io: Io, discard: () => void): Promise<void> {
  const usual = machine.platform === 'win32' ? 'notepad' : 'vi'
  const command = variable(io.env, 'VISUAL') ?? variable(io.env, 'EDITOR') ?? usual
  const words = command.trim().split(/\s+/)
  const at = takesLine.test(basename(words[0] ?? '')) ? [`+${line}`] : []
  const child = spawnOn(io, [...words, ...at, copy], io.env)
  const release = leaveSignalsTo(child, io.signals)
  try {
    const [code, killed] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
    if (code === 0) return
    discard()
    // A shell between svc and the editor ends with 130.
    if (killed === 'SIGINT' || code === 130) throw new Fault('Interrupted', 'interrupted; nothing was written')
    throw new Fault('Local', `the editor ${command} ended with ${code ?? 'a signal'}; nothing was written`)
  } catch (error) {
    if (error instanceof Fault) throw error
    discard()
    throw new Fault('Local', `the editor ${command} cannot be started`, {
      hints: ['Set VISUAL or EDITOR to the command of your editor.'],
      cause: error,
    })
  } finally {
    release()
  }
}
