/** Reads the files of other tools, and writes svc.yaml with what each entry becomes, or why it cannot. */
import { Fault } from '../../base/errors.ts'
import { isMap, type Raw } from '../../base/settings/index.ts'
import type { Proposal, ProposedEntry } from '../../checks/discover/index.ts'
import { monitorName } from '../../checks/plan/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import { parseDocument } from '../document.ts'
import { typeOfKind } from '../edit.ts'
import type { LoadedConfig } from '../load.ts'
import { proposedFile } from '../proposed.ts'
import { blackbox } from './blackbox.ts'
import { declined, hideSecrets, isSecretName } from './declined.ts'
import type { Draft, ToolFormat } from './draft.ts'
import { gatus } from './gatus.ts'
import { goss } from './goss.ts'
import { uptimeKuma } from './uptime-kuma.ts'

const formats = { gatus, blackbox, goss, 'uptime-kuma': uptimeKuma } as const satisfies Record<string, ToolFormat>

/** The outcome for one entry. */
export type ImportedEntry = {
  /** The entry as its tool names it: `endpoint "shop"`. */
  readonly entry: string
  /** The names of its monitors. */
  readonly monitors: readonly string[]
  /** Why its monitors are comments, if they are. */
  readonly problem?: string
  /** Parts of the entry that are not expressed, and why. */
  readonly notes: readonly string[]
}
export type Imported = {
  readonly yaml: string
  readonly entries: readonly ImportedEntry[]
  /** `SHOP_TOKEN: token of shop`, one for each secret that the file needs. */
  readonly secrets: readonly string[]
}
type Source = {
  readonly path: string
  readonly text: string
  /** The format, if it is not to be recognized. */
  readonly from?: string | undefined
  /** Lines for the head of the new file. */
  readonly head: readonly string[]
}

/**
 * Reads a file of another tool. `load` reads a text of svc.yaml, with its mistakes: monitors with a mistake become
 * comments, so that the result is valid. Throws `Fault` Usage for a format that is not known, and Local for a file that is neither YAML
 * nor JSON.
 */
export async function importFile(
  { path, text, from, head }: Source,
  load: (yaml: string) => Promise<Pick<LoadedConfig, 'invalidEntries' | 'mistakes'>>,
): Promise<Imported> {
  const { value, problems } = await parseDocument(text)
  const [problem] = problems
  if (problem) {
    const place = { file: path, ...problem.place, message: problem.message }
    const where = `${path}:${place.line}:${place.column}`
    throw new Fault('Local', `${where}: ${problem.message}`, { places: [place], hints: ['Render templates first.'] })
  }
  const file = isMap(value) ? value : {}
  const format = Object.entries<ToolFormat>(formats).find(
    ([name, one]) => (from ?? name) === name && one.recognizes(file),
  )?.[1]
  if (!format) {
    const hints = [`Formats: ${Object.keys(formats).join(' ')}`, 'Each is recognized by its sections.']
    throw new Fault('Usage', `${path} is not a file of ${from ?? 'a tool whose format svc import knows'}`, { hints })
  }
  const drafts = format.drafts(file)
  nameSecretsApart(drafts)
  const written = monitorsOf(drafts)
  const unread = Object.keys(file).filter((key) => !format.reads.includes(key))
  const sections = unread.length === 0 ? [] : [`Not expressed: the sections ${hideSecrets(unread.join(', '))}`]
  // A monitor that depends on one with a mistake has one in the next round.
  for (let round = 0; round < 10; round += 1) {
    const yaml = await fileOf([...head, ...sections], drafts, written)
    const { invalidEntries, mistakes } = await load(yaml)
    if (invalidEntries.length + mistakes.length === 0) {
      return { yaml, entries: drafts.map((draft) => entryOf(draft, written)), secrets: secretsOf(drafts) }
    }
    for (const { type, name, mistakes: own } of invalidEntries) {
      const monitor = written.find((one) => one.type === type && monitorName(one.entry.kind, one.entry.name) === name)
      if (monitor) monitor.problem ??= mistakeOf(own[0]?.message)
    }
    for (const { line, message } of mistakes) {
      const above = yaml
        .split('\n')
        .slice(0, line)
        .findLast((one) => /^ {2}[^\s#-]/.test(one))
      const profile = drafts.find(({ parameters, name }) => parameters && above === `  ${name}:`)
      if (profile) profile.problem ??= mistakeOf(message)
    }
  }
  throw new Fault('Defect', `svc import made a file of ${path} that is not valid`)
}

/** A mistake without the place of the entry, which is a comment then. */
const mistakeOf = (message = ''): string =>
  hideSecrets(message.replace(/^(?:types\.\w+(?:\.monitors)?|profiles\.[^.]+\.monitors)\[\d+\]\.?/, ''))

type Written = {
  readonly type: ServerType
  readonly entry: ProposedEntry
  readonly draft: Draft
  problem: string | undefined
}

/** The monitors of all entries. Names are unique among the monitors of a kind and a type. */
function monitorsOf(drafts: readonly Draft[]): readonly Written[] {
  const taken = new Set<string>()
  return drafts.flatMap((draft) =>
    draft.monitors().map((settings) => {
      const type = typeOfKind(String(settings['kind']))
      const base = hideSecrets(draft.name).replaceAll(/\p{C}/gu, ' ').slice(0, 90)
      let name = base
      for (let more = 2; taken.has(`${type} ${String(settings['kind'])} ${name}`); more += 1) name = `${base} ${more}`
      taken.add(`${type} ${String(settings['kind'])} ${name}`)
      return { type, draft, ...withoutSecrets({ ...settings, name }, draft) }
    }),
  )
}

/** The settings without what may be a secret, and why they cannot be used as they are. */
function withoutSecrets(settings: Raw, draft: Draft): Pick<Written, 'entry' | 'problem'> {
  let { problem } = draft
  const clean = (value: unknown, key: string): unknown => {
    if (Array.isArray(value)) return value.map((one) => clean(one, key))
    if (isMap(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, clean(one, name)]))
    if (typeof value !== 'string') return value
    const hidden = key.startsWith('$') && isSecretName(key) ? '***' : hideSecrets(value)
    if (hidden !== value) problem ??= `${key}: ${declined.secret}`
    else if (/\{\{/.test(value) || (!draft.parameters && /\$\{/.test(value))) problem ??= `${key}: ${declined.template}`
    return hidden
  }
  const entry = clean(settings, '') as ProposedEntry
  return { entry, problem }
}

/** Gives two secrets two variables, unless the other tool has one variable for both. */
function nameSecretsApart(drafts: readonly Draft[]): void {
  const taken = new Set(
    drafts.flatMap(({ secrets }) => secrets.flatMap((one) => (one.isOwn ? [] : [one.reference.env]))),
  )
  for (const { reference } of drafts.flatMap(({ secrets }) => secrets.filter(({ isOwn }) => isOwn))) {
    const base = reference.env
    for (let more = 2; taken.has(reference.env); more += 1) reference.env = `${base}_${more}`
    taken.add(reference.env)
  }
}

const secretsOf = (drafts: readonly Draft[]): readonly string[] =>
  drafts.flatMap(({ secrets, name }) =>
    secrets.map(({ reference, setting }) => `${reference.env}: ${setting} of ${hideSecrets(name)}`),
  )

/** An entry and what of it is not expressed, a line each. */
const linesOf = ({ title, notes }: Draft): readonly string[] =>
  [title, ...[...notes].map(([why, what]) => `  not expressed: ${what.join(', ')}: ${declined[why]}`)].map((line) =>
    hideSecrets(line).replaceAll(/\p{C}/gu, ' '),
  )

async function fileOf(head: readonly string[], drafts: readonly Draft[], written: readonly Written[]): Promise<string> {
  const own = written.filter(({ draft }) => !draft.parameters)
  const proposals = own.map(
    ({ type, entry, draft, problem }, index) =>
      ({
        type,
        entry,
        problem,
        ...(own[index - 1]?.draft === draft ? {} : { note: linesOf(draft).join('\n') }),
      }) as Proposal,
  )
  const others = drafts.filter((draft) => !written.some((one) => one.draft === draft)).flatMap(linesOf)
  const disks = drafts.flatMap(({ host }) => (host['disks'] ?? []) as readonly string[])
  const settings = Object.assign({}, ...drafts.map(({ host }) => host), { disks }) as object
  const secrets = secretsOf(drafts).map((line) => `#   ${line}`)
  return await proposedFile(proposals, head, {
    host: disks.length === 0 ? undefined : { type: 'App', settings },
    before: [
      ...others.map((line) => `# ${line}`),
      ...(await profilesOf(written.filter(({ draft }) => draft.parameters))),
    ],
    after:
      secrets.length === 0
        ? []
        : ['# The secrets of this file; {file: PATH} may stand in place of {env: NAME}:', ...secrets],
  })
}

/** `profiles:`, each with an entry that uses it, to be copied. */
async function profilesOf(written: readonly Written[]): Promise<readonly string[]> {
  if (written.length === 0) return []
  const { stringify } = await import('yaml')
  const all = [...Map.groupBy(written, ({ draft }) => draft)].map(([draft, monitors]) => {
    const targets = Object.entries(draft.parameters ?? {})
    const parameters = Object.fromEntries(
      targets.map(([key, type]) => [key, { type, required: true, doc: `Target of the probe: ${key}` }]),
    )
    const definition = { [draft.name]: { parameters, monitors: monitors.map(({ entry }) => entry) } }
    // Only the parameters are placeholders of the profile.
    const yaml = stringify(definition, { flowCollectionPadding: false, lineWidth: 0 }).replaceAll(
      '${group',
      () => '$${group',
    )
    const problem = draft.problem ?? monitors.find((one) => one.problem !== undefined)?.problem
    const use = [
      'profile: '.concat(draft.name),
      'name: NAME',
      ...targets.map(([key]) => `${key}: ${key.toUpperCase()}`),
    ]
    const lines = [
      ...linesOf(draft).map((line) => `  # ${line}`),
      `  # To use it: {${use.join(', ')}}`,
      ...(problem === undefined ? [] : [`  # Does not work as it is: ${problem}`]),
      ...yaml
        .trimEnd()
        .split('\n')
        .map((line) => `  ${problem === undefined ? '' : '# '}${line}`),
    ]
    return { problem, lines }
  })
  const works = all.some(({ problem }) => problem === undefined)
  return [works ? 'profiles:' : '# profiles:', ...all.flatMap(({ lines }) => lines)]
}

function entryOf(draft: Draft, all: readonly Written[]): ImportedEntry {
  const own = all.filter((one) => one.draft === draft)
  const names = own.map(({ entry }) =>
    draft.parameters ? `profile ${draft.name}` : monitorName(entry.kind, entry.name),
  )
  const problem = draft.problem ?? own.find((one) => one.problem !== undefined)?.problem
  const [entry = '', ...notes] = linesOf(draft)
  const monitors = [...new Set([...names, ...('disks' in draft.host ? ['host'] : [])])]
  return { entry, monitors, ...(problem === undefined ? {} : { problem }), notes: notes.map((line) => line.trim()) }
}
