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
import { didYouMean } from '../base/suggest.ts'
import { ServerType } from '../protocol/index.ts'
import { notifySettings, type ReceiverConfig, receiverKinds } from '../watch/notify/index.ts'
import { type Configured, invalidOf, monitorsOf, patternsFor, unknown } from './configured.ts'
import { asWritten, type Grammar, kindIn, type LongForm, longForm, sectionOf } from './long-form.ts'

/** The receivers of notifications, in the order of the file. */
export type NotifyConfig = readonly ReceiverConfig[]

const kindNames = receiverKinds.map(({ name }) => name)
const grammar: Grammar = { thing: 'receiver', isKind: (name) => kindNames.includes(name), common: notifySettings }

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

function readReceiver(raw: unknown, at: At, index: number, configured: Configured): ReceiverConfig | undefined {
  const { context, problems, warnings } = at.reading
  const kind = isMap(raw) ? receiverKinds.find(({ name }) => name === kindIn(raw, grammar)) : undefined
  const { entry, ...form } = isMap(raw) && kind ? longForm(raw, kind, grammar) : withoutKind(raw)
  const inEntry = (list: readonly Problem[]): readonly Problem[] =>
    list.map(({ path, message }) => ({ path: [index, ...path], message }))
  problems.push(...inEntry(form.problems))
  if (entry === undefined) return undefined
  let target: Target | undefined
  const { kind: kindSetting, ...common } = notifySettings
  const spec = kind ? { ...kind.settings, kind: kindSetting, ...common } : common
  // A secret in the keychain is bound to the host of its own receiver.
  const read = readSettings(spec as SettingsSpec, entry, { ...context, target: () => target })
  problems.push(...inEntry(asWritten(read.problems, form.written)))
  warnings.push(...inEntry(asWritten(read.warnings, form.written)))
  if (!kind || form.problems.length > 0 || read.problems.length > 0) return undefined
  const values = read.values as unknown as Omit<ReceiverConfig, 'settings'> & Raw
  const settings = Object.fromEntries(
    Object.keys(kind.settings).flatMap((key) => (Object.hasOwn(values, key) ? [[key, values[key]]] : [])),
  )
  target = kind.target(settings)
  problems.push(...inEntry(asWritten(kind.mistakes(settings, values), form.written)))
  const monitors = values.only.monitors && patternsFor(values.only.monitors, at.in('only').in('monitors'), configured)
  refuseUnknown(values.only, at.in('only'), configured)
  const { name, remind, details, silences, volatile } = values
  return {
    name,
    only: { ...values.only, ...(monitors ? { monitors } : {}) },
    details,
    silences,
    volatile,
    ...(remind === undefined ? {} : { remind }),
    kind: kind.name,
    ...(kind.runsPrograms === true ? { runsProgram: true } : {}),
    settings,
  }
}

/** An entry that does not state a kind that exists. The other settings are those of that kind. */
function withoutKind(raw: unknown): { readonly entry: unknown } & Omit<LongForm, 'entry'> {
  const written: LongForm['written'] = (path) => path
  if (!isMap(raw)) return { entry: raw, problems: [], written }
  const section = sectionOf(raw, grammar) ?? 'kind'
  const name = kindIn(raw, grammar) ?? undefined
  const { [section]: _, ...rest } = raw
  if (name === undefined) {
    const message = `does not say how to send: add one of ${kindNames.join(', ')} as \`kind:\``
    return { entry: rest, problems: [{ path: [], message }], written }
  }
  const meant = typeof name === 'string' ? didYouMean(name, kindNames) : undefined
  const way = meant === undefined ? `use one of ${kindNames.join(', ')}` : `did you mean \`${meant}\`?`
  const common = Object.entries(rest).filter(([key]) => Object.hasOwn(notifySettings, key))
  const message = `is not a kind of receiver: ${way}`
  return { entry: Object.fromEntries(common), problems: [{ path: [section], message }], written }
}

/** Reports what no incident can ever match: an alert must not be lost to a typing error. */
function refuseUnknown({ types, tags }: ReceiverConfig['only'], at: At, configured: Configured): void {
  for (const [index, type] of (types ?? []).entries()) {
    const here = at.in('types').in(index)
    if (!ServerType.values.some((one) => one === type)) here.report(unknown('a server type', type, ServerType.values))
    else if (configured.types[type as ServerType] === undefined)
      here.report(`is ${type}, for which this file has no monitors`)
  }
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
