import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import { stateWord } from '../../core/reports/index.ts'
import type { Trial } from '../../core/service.ts'
import { list, type RecordList } from '../render/list.ts'
import { styles } from '../render/table.ts'

export type Finding = Trial['results'][number]

/** The results of a single monitor's run. */
export const findings = list<Finding>()({
  around: ['Type', 'Monitor'],
  columns: [
    { key: 'MonitoringName', value: ({ check }) => check, field: 'Check', title: 'CHECK', shrink: 2 },
    {
      key: 'Level',
      value: ({ level }) => level,
      title: 'RESULT',
      cell: (finding) => {
        const text = stateWord({ ...finding, fault: finding.fault })
        return { text, style: text === 'skipped' ? 'dim' : styles[finding.level] }
      },
    },
    { key: 'Fault', value: ({ fault }) => fault, title: 'FAULT' },
    {
      key: 'Message',
      value: ({ message }) => message,
      title: 'SAW',
      cell: ({ message, details = [] }) => [message, ...details.map((text) => ({ text, style: 'dim' }) as const)],
      shrink: 1,
    },
    { key: 'Details', value: ({ details = [] }) => details, field: false },
    { key: 'Observed', value: ({ observed }) => observed, field: false },
    { key: 'Unit', value: ({ unit }) => unit, field: false },
    { key: 'Limit', value: ({ limit }) => limit, field: false },
    { key: 'Address', value: ({ address }) => address, field: false },
  ],
  members: ['MonitoringName', 'Level', 'Message', 'Details', 'Fault', 'Observed', 'Unit', 'Limit', 'Address'],
})

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
  json: (row) => row,
})

/** Every kind available in svc.yaml. */
export const kinds = list<KindRow>()({
  columns: [
    { key: 'name', title: 'KIND' },
    { key: 'title', title: 'WHAT IT CHECKS', shrink: 1, least: 24 },
  ],
  json: (kind) => kind,
})

export const kindChecks = list<KindRow['checks'][number]>()({
  columns: [
    { key: 'name', title: 'CHECK', shrink: 2 },
    { key: 'depth', title: 'FROM' },
    { key: 'doc', title: 'LOOKS AT', shrink: 1, least: 24 },
  ],
  json: (check) => check,
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
    json: (setting) => setting,
  })

/** The settings of a kind, and the parameters of a built-in profile. */
export const settings = settingList('SETTING')

export const parameters = settingList('PARAMETER')

/** Every built-in profile. */
export const monitorProfiles = list<ProfileRow>()({
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
  json: (profile) => profile,
})

export const profileMonitors = list<ProfileRow['monitors'][number]>()({
  columns: [
    { key: 'name', title: 'MONITOR', shrink: 1 },
    { key: 'kind', title: 'KIND', shrink: 2 },
    { key: 'depth', title: 'FROM' },
  ],
  json: (monitor) => monitor,
})
