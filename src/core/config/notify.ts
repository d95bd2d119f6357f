import {
  type At,
  isMap,
  type Problem,
  place,
  type Raw,
  readSettings,
  type SettingsContext,
  type SettingsSpec,
  type Target,
} from '../base/settings/index.ts'
import { ServerType } from '../protocol/index.ts'
import { type AnyReceiverKind, notifySettings, type ReceiverConfig, receiverKinds } from '../watch/notify/index.ts'
import { type Configured, invalidOf, monitorsOf, refuseIdle, unknown } from './configured.ts'

/** The receivers of notifications, in the order of the file. */
export type NotifyConfig = readonly ReceiverConfig[]

/** A table of settings in which each kind of receiver is a group. */
const entrySettings: SettingsSpec = {
  ...notifySettings,
  ...Object.fromEntries(
    receiverKinds.map(({ name, settings, doc }) => [name, { type: 'group', fields: settings, doc }] as const),
  ),
}
const kindNames = receiverKinds.map(({ name }) => name)

/** Reads the `notify:` section. Paths of problems are relative to it. */
export function readNotify(
  raw: unknown,
  context: SettingsContext,
  configured: Configured,
): { readonly values: NotifyConfig; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] } {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const reading = { problems, warnings, context }
  if (!Array.isArray(raw)) {
    problems.push({ path: [], message: 'must be a list of receivers: write "- name: …" under it' })
    return { values: [], problems, warnings }
  }
  const entries: readonly unknown[] = raw
  const values = entries.flatMap((entry, index) => {
    const at = place([index], reading)
    const receiver = readReceiver(entry, at, index, configured)
    if (isMap(entry) && entries.slice(0, index).some((one) => isMap(one) && one['name'] === entry['name'])) {
      at.in('name').report(`is ${String(entry['name'])}, as is that of another receiver: choose another name`)
    }
    return receiver === undefined ? [] : [receiver]
  })
  return { values, problems, warnings }
}

function readReceiver(entry: unknown, at: At, index: number, configured: Configured): ReceiverConfig | undefined {
  const { context, problems, warnings } = at.reading
  let target: Target | undefined
  // A secret in the keychain is bound to the host of its own receiver.
  const read = readSettings(entrySettings, entry, { ...context, target: () => target })
  const inEntry = (list: readonly Problem[], ...steps: readonly string[]): readonly Problem[] =>
    list.map(({ path, message }) => ({ path: [index, ...steps, ...path], message }))
  problems.push(...inEntry(read.problems))
  warnings.push(...inEntry(read.warnings))
  const kind = isMap(entry) ? kindIn(entry, at) : undefined
  if (!isMap(entry) || read.problems.length > 0 || kind === undefined) return undefined
  const values = read.values as unknown as Omit<ReceiverConfig, 'kind' | 'settings'> & Raw
  const settings = values[kind.name]
  target = kind.target(settings)
  problems.push(...inEntry(kind.mistakes(settings, values), kind.name))
  refuseUnknown(values.only, at.in('only'), configured)
  const { name, only, remind, details, quiet, volatile } = values
  return {
    name,
    only,
    details,
    quiet,
    volatile,
    ...(remind === undefined ? {} : { remind }),
    kind: kind.name,
    ...(kind.runsPrograms === true ? { runsProgram: true } : {}),
    settings,
  }
}

/** The one kind of which an entry has the section. */
function kindIn(entry: Raw, at: At): AnyReceiverKind | undefined {
  const [name, another] = kindNames.filter((one) => Object.hasOwn(entry, one))
  if (name === undefined) return at.report(`does not say how to send: add one of ${kindNames.join(', ')}`)
  if (another !== undefined) return at.in(another).report(`is there beside ${name}: make it a receiver of its own`)
  return receiverKinds.find((kind) => kind.name === name)
}

/** Reports what no incident can ever match: an alert must not be lost to a typing error. */
function refuseUnknown({ types, monitors, tags }: ReceiverConfig['only'], at: At, configured: Configured): void {
  for (const [index, type] of (types ?? []).entries()) {
    const here = at.in('types').in(index)
    if (!ServerType.values.some((one) => one === type)) here.report(unknown('a server type', type, ServerType.values))
    else if (configured.types[type as ServerType] === undefined)
      here.report(`is ${type}, for which this file has no monitors`)
  }
  refuseIdle(monitors ?? [], at.in('monitors'), configured)
  // The tags of an entry with mistakes are unknown.
  if (invalidOf(configured).length > 0) return
  const everyTag = [...new Set(monitorsOf(configured).flatMap((one) => one.tags))]
  for (const [index, tag] of (tags ?? []).entries()) {
    if (!everyTag.includes(tag))
      at.in('tags')
        .in(index)
        .report(unknown('a tag of any monitor', tag, everyTag))
  }
}
