import { count } from '../../core/base/format.ts'
import type { KindRow, PlanRow, ProfileRow } from '../../core/checks/plan/index.ts'
import { stateWord } from '../../core/checks/reports/index.ts'
import { ExecutionMode, ServerType } from '../../core/protocol/index.ts'
import type { Trial } from '../../core/protocol/service/service.ts'
import { thisMachine } from '../io/process.ts'
import { painter } from '../io/terminal.ts'
import {
  type Answer,
  document,
  flag,
  integer,
  type JsonShape,
  listOf,
  number,
  objectOf,
  oneOf,
  optional,
  orNull,
  string,
  strings,
} from '../render/document.ts'
import { everyType, type ListOutput, list, type RecordList, record } from '../render/list.ts'
import { paragraph, styles } from '../render/table.ts'

export type Finding = Trial['results'][number]

/** The results of a single monitor's run. */
export const findings = list<Finding>()({
  documentOnly: { target: string, mode: string, durationMs: number, attempts: integer },
  around: ['type', 'monitor'],
  rows: 'findings',
  columns: [
    { key: 'check', is: string, title: 'CHECK', shrink: 2 },
    {
      key: 'level',
      is: oneOf('ok', 'warn', 'not checked', 'fail'),
      title: 'RESULT',
      cell: (finding) => {
        const text = stateWord({ ...finding, fault: finding.fault })
        return { text, style: text === 'skipped' ? 'dim' : styles[finding.level] }
      },
    },
    { key: 'fault', is: orNull(string), title: 'FAULT' },
    {
      key: 'message',
      is: string,
      title: 'SAW',
      cell: ({ message, details = [] }) => [message, ...details.map((text) => ({ text, style: 'dim' }) as const)],
      shrink: 1,
    },
    { key: 'details', value: ({ details = [] }) => details, is: strings, field: false },
    { key: 'observed', is: orNull(number), field: false },
    { key: 'unit', is: orNull(string), field: false },
    { key: 'limit', is: orNull(number), field: false },
    { key: 'address', is: orNull(string), field: false },
  ],
  members: ['check', 'level', 'message', 'details', 'fault', 'observed', 'unit', 'limit', 'address'],
})

/** A change of an entry of svc.yaml. */
export type ChangedEntry = {
  readonly change: 'added' | 'removed' | 'edited' | 'unchanged'
  readonly type: ServerType
  readonly monitor: string
  readonly file: string
}

/** The change that a command has made: a list with one row. */
export const changedEntries = list<ChangedEntry>()({
  around: ['target'],
  rows: 'monitors',
  columns: [
    { key: 'change', is: oneOf('added', 'removed', 'edited', 'unchanged'), title: 'CHANGE' },
    { key: 'type', is: string, title: 'TYPE' },
    { key: 'monitor', is: string, title: 'MONITOR', shrink: 1 },
    { key: 'file', is: string, title: 'FILE', shrink: 2 },
  ],
})

const depth = oneOf(...ExecutionMode.values)

/** The monitors of one type, or those of several types: the documents of `monitors list`. */
const planMonitors = listOf(
  objectOf({
    MonitorName: string,
    Kind: string,
    Depth: depth,
    Checks: listOf(objectOf({ Name: string, Depth: depth, Doc: string })),
    Host: flag,
    DependsOn: optional(strings),
    Tags: optional(strings),
  }),
)
const planSchema: JsonShape = {
  anyOf: [planMonitors, listOf(objectOf({ type: oneOf(...ServerType.values), monitors: planMonitors }))],
}

/** One check of a plan. The JSON document is the plan itself. */
export type PlanCheckRow = PlanRow['Checks'][number] & Pick<PlanRow, 'MonitorName'>

export const planChecks = list<PlanCheckRow>()({
  around: ['Type'],
  columns: [
    { key: 'MonitorName', title: 'MONITOR', shrink: 2, once: true },
    { key: 'Name', field: 'Check', title: 'CHECK', shrink: 2 },
    { key: 'Depth', title: 'FROM' },
    { key: 'Doc', title: 'LOOKS AT', shrink: 1, least: 24 },
  ],
})

const settingShape = objectOf({ name: string, type: string, default: optional(string), required: flag, doc: string })
const checkShape = objectOf({
  name: string,
  depth,
  doc: string,
  when: optional(strings),
  emptyWhere: optional(string),
  privilege: optional(string),
  demandedBy: optional(strings),
})

/** The answer of `monitors list`. */
export const plans: Answer = { schema: () => planSchema, fields: planChecks.fields }

/** Every kind available in svc.yaml. */
export const kinds = list<KindRow>()({
  documentOnly: { target: string },
  rows: 'kinds',
  columns: [
    { key: 'name', title: 'KIND' },
    { key: 'title', title: 'WHAT IT CHECKS', shrink: 1, least: 24 },
  ],
  json: {
    of: ({ name, title, settings, checks }) => ({
      name,
      title,
      settings,
      // What the engine needs besides is not part of the document.
      checks: checks.map(({ name, depth, doc, when, emptyWhere, privilege, demandedBy }) => ({
        name,
        depth,
        doc,
        when,
        emptyWhere,
        privilege,
        demandedBy,
      })),
    }),
    is: objectOf({ name: string, title: string, settings: listOf(settingShape), checks: listOf(checkShape) }),
  },
})

export const kindChecks = list<KindRow['checks'][number]>()({
  columns: [
    { key: 'name', title: 'CHECK', shrink: 2 },
    { key: 'depth', title: 'FROM' },
    { key: 'doc', title: 'LOOKS AT', shrink: 1, least: 24 },
  ],
})

type SettingRow = ProfileRow['parameters'][number]

const settingList = (title: string): RecordList<SettingRow, never> =>
  list<SettingRow>()({
    columns: [
      { key: 'name', title, shrink: 2 },
      { key: 'type', title: 'TYPE', shrink: 2 },
      {
        key: 'default',
        value: (setting) => (setting.required ? 'required' : setting.default),
        title: 'DEFAULT',
        shrink: 2,
      },
      { key: 'doc', title: 'MEANING', shrink: 1, least: 24 },
    ],
    json: { of: (setting) => setting, is: settingShape },
  })

/** The settings of a kind, and the parameters of a built-in profile. */
export const settings = settingList('SETTING')

export const parameters = settingList('PARAMETER')

/** Every built-in profile. */
export const monitorProfiles = list<ProfileRow>()({
  documentOnly: { target: string },
  rows: 'profiles',
  columns: [
    { key: 'name', title: 'PROFILE' },
    {
      key: 'types',
      title: 'FOR',
      cell: ({ types }) => types.join(', '),
      text: ({ types }) => types.join(', '),
      shrink: 2,
    },
    { key: 'title', title: 'WHAT IT CHECKS', shrink: 1, least: 24 },
  ],
  json: {
    of: (profile) => profile,
    is: objectOf({
      name: string,
      title: string,
      doc: string,
      types: strings,
      parameters: listOf(settingShape),
      monitors: listOf(objectOf({ name: string, kind: string, depth: string })),
    }),
  },
})

export const profileMonitors = list<ProfileRow['monitors'][number]>()({
  columns: [
    { key: 'name', title: 'MONITOR', shrink: 1 },
    { key: 'kind', title: 'KIND', shrink: 2 },
    { key: 'depth', title: 'FROM' },
  ],
})

type TypePlan = { readonly type: string; readonly monitors: readonly PlanRow[] }

/** A monitor of a plan on one line. */
type MonitorLine = PlanRow & { readonly type: string }

const monitorLines = list<MonitorLine>()({
  columns: [
    { key: 'type', title: 'TYPE', once: true },
    { key: 'MonitorName', title: 'MONITOR', shrink: 1, least: 14 },
    { key: 'Depth', title: 'FROM' },
    { key: 'checks', value: ({ Checks }) => Checks.length, title: 'CHECKS', align: 'right' },
    {
      key: 'DependsOn',
      title: 'DEPENDS ON',
      shrink: 2,
      optional: true,
      cell: ({ DependsOn = [] }) => DependsOn.join(', '),
    },
    { key: 'Tags', title: 'TAGS', shrink: 3, optional: true, cell: ({ Tags = [] }) => Tags.join(', ') },
  ],
})

/**
 * The monitors that would run, on one line each: the machine once if each type plans the same checks of it, and no type
 * that has nothing but the machine.
 */
export function renderMonitors(plans: readonly TypePlan[], mode: string, output: ListOutput): string {
  const isOwn = ({ Host, Kind }: PlanRow): boolean => !Host && Kind !== 'configuration'
  const configured = plans.filter(({ monitors }) => monitors.some(isOwn))
  const visible = configured.length > 0 ? configured : plans
  const rows = visible.flatMap(({ type, monitors }) => monitors.map((monitor) => ({ ...monitor, type })))
  const [host, ...others] = rows.filter(({ Host }) => Host)
  const checksOf = ({ Checks }: PlanRow): string => JSON.stringify(Checks)
  const isInEach = others.length > 0 && others.length === visible.length - 1
  const isOnce = host !== undefined && isInEach && others.every((other) => checksOf(other) === checksOf(host))
  const lines = isOnce ? [{ ...host, type: everyType }, ...rows.filter(({ Host }) => !Host)] : rows
  const sentence = `${count(lines.length, 'monitor')}, ${mode}`
  return monitorLines.render(lines, {}, { ...output, headline: { mark: 'ok', sentence } })
}

/** The checks that would run for each type in a mode. */
export function renderPlans(
  plans: readonly TypePlan[],
  mode: string,
  { screen, header = true }: Pick<ListOutput, 'screen' | 'header'>,
): string {
  const paint = painter(screen.colour)
  const head = header && !screen.isTTY ? [record(planChecks.fields)] : []
  const parts = plans.map(({ type, monitors }) => {
    const rows = monitors.flatMap(({ MonitorName, Checks }) => Checks.map((check) => ({ MonitorName, ...check })))
    return screen.isTTY
      ? [paint('strong', `${type}, ${mode}`), planChecks.table(rows, screen), ...notes(monitors, screen)].join('\n')
      : rows.map((row) => planChecks.record(row, { Type: type })).join('\n')
  })
  return [...head, ...parts].join(screen.isTTY ? '\n\n' : '\n')
}

/** On what monitors depend, and their tags: one line each, below the table. */
const notes = (monitors: readonly PlanRow[], screen: ListOutput['screen']): readonly string[] =>
  monitors.flatMap(({ MonitorName, DependsOn = [], Tags = [] }) => [
    ...(DependsOn.length === 0 ? [] : [paragraph(`${MonitorName} depends on ${DependsOn.join(', ')}`, screen)]),
    ...(Tags.length === 0 ? [] : [paragraph(`${MonitorName} has the tags ${Tags.join(', ')}`, screen)]),
  ])

/** One kind: its checks and its settings for svc.yaml. */
export function renderKind(kind: KindRow, output: ListOutput): string {
  const { json, screen } = output
  if (json) return kinds.document([kind], { target: thisMachine })
  if (!screen.isTTY) {
    return [kindChecks.records(kind.checks, {}, output), settings.records(kind.settings, {}, output)].join('\n')
  }
  const tables = [kindChecks.table(kind.checks, screen), settings.table(kind.settings, screen)]
  return [paragraph(`${kind.name}: ${kind.title}`, screen), ...tables].join('\n\n')
}

/** One built-in profile: its monitors and its parameters. */
export function renderProfile(profile: ProfileRow, output: ListOutput): string {
  const { name, title, doc, monitors } = profile
  const { json, screen } = output
  if (json) return monitorProfiles.document([profile], { target: thisMachine })
  if (!screen.isTTY) {
    return [profileMonitors.records(monitors, {}, output), parameters.records(profile.parameters, {}, output)].join(
      '\n',
    )
  }
  const tables = [profileMonitors.table(monitors, screen), parameters.table(profile.parameters, screen)]
  return [[`${name}: ${title}`, doc].map((text) => paragraph(text, screen)).join('\n'), ...tables].join('\n\n')
}

/** A svc.yaml without mistakes, and how many monitors each server type has in it. */
export const validated = document<{ readonly type: string; readonly monitors: number }>()({
  around: { target: string, valid: flag, file: string, included: strings, warnings: strings },
  rows: 'types',
  members: { type: oneOf(...ServerType.values), monitors: integer },
})
