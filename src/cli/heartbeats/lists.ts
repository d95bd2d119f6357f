import { showDuration } from '../../core/base/format.ts'
import { stateWords } from '../../core/checks/reports/index.ts'
import type { Heartbeat, HeartbeatEntry, ReportHeartbeatResponse } from '../../core/protocol/index.ts'
import { fromEntry } from '../../core/protocol/service/facts.ts'
import { dateTime, document, flag, integer, number, oneOf, orNull, string } from '../render/document.ts'
import { type ListOutput, list } from '../render/list.ts'
import { type FactRows, headline, type Mark, moment, pairs, styles } from '../render/table.ts'

/** A heartbeat as the server received it. */
export function renderReceipt(answer: ReportHeartbeatResponse, target: string, output: ListOutput): string {
  const forMachines = receipts.single(answer, { target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const { Name = '', ReceivedAt, ClockSkew = 0 } = answer
  const facts: FactRows = [
    ['Target', target],
    ['Received', ReceivedAt === undefined ? '' : moment(ReceivedAt)],
    ['Clock', Math.abs(ClockSkew) < 2_000 ? '' : { text: skewOf(ClockSkew), style: 'caution' }],
  ]
  return `${headline('ok', `The heartbeat of ${Name} is received`, screen)}\n${pairs(facts, screen)}`
}

const skewOf = (ms: number): string => `${showDuration(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} the server's`

export type ListedHeartbeat = Omit<ReturnType<typeof fromEntry<HeartbeatEntry>>, 'at' | 'status'> & {
  readonly at: Date
  readonly status: Heartbeat['status']
  readonly ageMs: number
}

export function heartbeatRow(entry: HeartbeatEntry, now: Date): ListedHeartbeat {
  const { at = now, status = 'Fail', ...heartbeat } = fromEntry(entry)
  return { ...heartbeat, at, status, ageMs: Math.max(0, now.getTime() - at.getTime()) }
}

/** `running for 5 min`, or how long the last run took: the message says how it ended. Empty for agents without a job. */
const runText = ({ startedAt, endedAt, duration = 0, ageMs, at }: ListedHeartbeat): string => {
  if (startedAt === undefined) return ''
  if (endedAt === undefined) return `running for ${showDuration(ageMs + at.getTime() - startedAt.getTime())}`
  return `took ${showDuration(duration)}`
}

const heartbeatLevels: Readonly<Record<Heartbeat['status'], Mark>> = { Ok: 'ok', Warn: 'warn', Fail: 'fail' }

export const heartbeats = list<ListedHeartbeat>()({
  around: ['store'],
  beneath: 'store',
  rows: 'heartbeats',
  headline: ['agent', 'agents'],
  empty: { sentence: 'No agent has reported yet', next: 'To report:   svc heartbeat NAME' },
  columns: [
    { key: 'name', is: string, title: 'AGENT', shrink: 2 },
    {
      key: 'status',
      is: oneOf('Ok', 'Warn', 'Fail'),
      title: 'STATUS',
      cell: ({ status }) => ({
        text: stateWords[heartbeatLevels[status]],
        style: status === 'Ok' ? undefined : styles[heartbeatLevels[status]],
      }),
    },
    { key: 'at', is: dateTime },
    {
      key: 'ageSeconds',
      value: ({ ageMs }) => Math.floor(ageMs / 1_000),
      is: integer,
      title: 'AGE',
      cell: ({ ageMs }) => showDuration(ageMs),
    },
    { key: 'version', is: orNull(string), title: 'VERSION', shrink: 3 },
    { key: 'backlog', is: orNull(integer), title: 'BACKLOG', align: 'right' },
    { key: 'by', value: ({ who }) => who, is: orNull(string) },
    { key: 'lastRun', value: runText, title: 'LAST RUN', shrink: 4, optional: true, field: false, json: false },
    { key: 'message', is: orNull(string), title: 'MESSAGE', shrink: 1 },
    { key: 'startedAt', is: dateTime, absent: 'json' },
    { key: 'durationMs', value: ({ duration }) => duration, is: number, absent: 'json' },
    { key: 'exitCode', is: integer, absent: 'json' },
    { key: 'output', is: string, field: false, absent: 'json' },
    {
      key: 'intervalSeconds',
      is: orNull(number),
      value: ({ interval }) => (interval === undefined ? undefined : interval / 1_000),
      field: false,
    },
    { key: 'diskFreePercent', is: orNull(number), field: false },
    { key: 'clockSkewMs', value: ({ clockSkew }) => clockSkew, is: orNull(number), field: false },
  ],
  members: [
    'name',
    'status',
    'message',
    'version',
    'at',
    'ageSeconds',
    'intervalSeconds',
    'backlog',
    'diskFreePercent',
    'clockSkewMs',
    'by',
    'startedAt',
    'durationMs',
    'exitCode',
    'output',
  ],
})

/** A heartbeat as the server received it: a list with one row. */
export const receipts = list<ReportHeartbeatResponse>()({
  around: ['target'],
  rows: 'heartbeats',
  columns: [
    { key: 'name', value: ({ Name }) => Name, is: string, absent: 'json' },
    { key: 'receivedAt', value: ({ ReceivedAt }) => ReceivedAt, is: dateTime, absent: 'json' },
    { key: 'clockSkewMs', value: ({ ClockSkew }) => ClockSkew, is: number, field: false, absent: 'json' },
  ],
})

export const removedHeartbeats = document<{ readonly name: string; readonly removed: true }>()({
  around: { store: string },
  rows: 'heartbeats',
  members: { name: string, removed: flag },
})
