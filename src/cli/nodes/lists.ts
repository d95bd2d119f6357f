import { count, showDuration } from '../../core/base/format.ts'
import type { GetNodesResponse, NodeEntry } from '../../core/protocol/index.ts'
import { dateTime, document, flag, integer, oneOf, orNull, string, strings } from '../render/document.ts'
import { type Headline, type ListOutput, list } from '../render/list.ts'
import { type CellText, day, moment, names } from '../render/table.ts'

/** A node as the list shows it. */
export type ListedNode = {
  readonly name: string
  readonly state: 'live' | 'out' | 'left'
  /** When it last renewed its row. */
  readonly seenAt: Date | undefined
  readonly isolated: boolean
  /** How many monitors of the network it owns. */
  readonly monitors: number | undefined
  readonly configuration: string | undefined
  readonly differs: boolean
  readonly version: string | undefined
  readonly url: string | undefined
  readonly startedAt: Date | undefined
  /** Whether it answers. */
  readonly current: boolean
  readonly now: Date
}

const states = { Live: 'live', Out: 'out', Left: 'left' } as const

/** `now`: for people, who read how long ago something was. */
export const nodeRow = (entry: NodeEntry, now: Date): ListedNode => ({
  name: entry.Name ?? '',
  state: states[entry.State ?? 'Out'],
  seenAt: entry.SeenAt,
  isolated: entry.Isolated ?? false,
  monitors: entry.Monitors,
  configuration: entry.Configuration,
  differs: entry.Differs ?? false,
  version: entry.Version,
  url: entry.Url,
  startedAt: entry.StartedAt,
  current: entry.Current ?? false,
  now,
})

function stateCell({ state, seenAt, isolated, now }: ListedNode): CellText {
  // Without the date if that is today.
  const at = seenAt === undefined ? '' : moment(seenAt).replace(`${day(now)} `, '')
  if (state === 'out') return { text: `out since ${at}`, style: 'bad' }
  if (state === 'left') return { text: `left at ${at}`, style: 'dim' }
  return isolated ? { text: 'live, isolated', style: 'caution' } : 'live'
}

const upCell = ({ state, startedAt, now }: ListedNode): string =>
  state === 'live' && startedAt ? showDuration(Math.max(0, now.getTime() - startedAt.getTime())) : ''

export const nodes = list<ListedNode>()({
  around: ['target'],
  documentOnly: {
    target: string,
    unowned: strings,
    moreUnowned: integer,
    onIsolated: strings,
    moreOnIsolated: integer,
  },
  beneath: 'target',
  rows: 'nodes',
  empty: {
    sentence: 'No svc serve has joined this store',
    next: 'Each svc serve joins the PostgreSQL store that it opens.',
  },
  columns: [
    { key: 'name', is: string, title: 'NODE', shrink: 3, cell: ({ name, current }) => `${name}${current ? ' *' : ''}` },
    { key: 'state', is: oneOf('live', 'out', 'left'), title: 'STATE', cell: stateCell, shrink: 1, least: 14 },
    { key: 'seenAt', is: orNull(dateTime) },
    { key: 'isolated', is: flag },
    {
      key: 'monitors',
      is: orNull(integer),
      title: 'MONITORS',
      align: 'right',
      cell: ({ monitors }) => (monitors === undefined ? 'unknown' : String(monitors)),
    },
    { key: 'configuration', is: orNull(string) },
    {
      key: 'differs',
      is: flag,
      title: 'CONFIG',
      cell: ({ configuration = '', differs }) => (differs ? { text: configuration, style: 'caution' } : ''),
      optional: true,
    },
    { key: 'version', is: orNull(string), title: 'VERSION' },
    { key: 'startedAt', is: orNull(dateTime) },
    { key: 'up', value: upCell, title: 'UP', cell: upCell, field: false, json: false },
    {
      key: 'url',
      is: orNull(string),
      title: 'ADDRESS',
      cell: ({ url = '' }) => url.replace(/^https:\/\//, ''),
      shrink: 2,
      optional: true,
    },
    { key: 'current', is: flag },
  ],
})

/** How many monitors a sentence names. */
const maxNamed = 5

/** How many nodes are live, and whether each monitor of the network has an owner that reaches the network. */
export function nodesHeadline({
  Nodes = [],
  Unowned = [],
  MoreUnowned = 0,
  OnIsolated = [],
  MoreOnIsolated = 0,
}: GetNodesResponse): Headline {
  const live = Nodes.filter(({ State }) => State === 'Live')
  if (live.length === 0) {
    const count = Unowned.length + MoreUnowned
    const none = Nodes.length === 1 ? 'the only node is not live' : `none of the ${Nodes.length} nodes is live`
    return { mark: 'fail', sentence: `${none}: nobody runs ${count === 0 ? 'the monitors' : counted(count)}` }
  }
  const unowned = problemOf(Unowned, MoreUnowned, ['has no owner', 'have no owner'])
  const onIsolated = problemOf(OnIsolated, MoreOnIsolated, [
    'is owned by an isolated node',
    'are owned by isolated nodes',
  ])
  const unreadable = namesOf(Nodes.filter(({ Version }) => Version === undefined))
  const unknown = namesOf(live.filter(({ Monitors }) => Monitors === undefined))
  const problems = [
    ...unowned,
    ...onIsolated,
    ...(unreadable.length > 0 ? [`the row of ${names(unreadable)} in the store is unreadable`] : []),
    ...(unknown.length > 0 ? [`nobody knows the monitors of ${names(unknown)}`] : []),
  ]
  const whole = live.some(({ Monitors }) => Monitors !== 0)
    ? 'every network monitor has an owner'
    : 'there are no network monitors'
  const differing = namesOf(live.filter(({ Differs }) => Differs))
  const isWell =
    problems.length === 0 &&
    differing.length === 0 &&
    Nodes.every(({ State, Isolated }) => State !== 'Out' && Isolated !== true)
  return {
    mark: unowned.length > 0 ? 'fail' : isWell ? 'ok' : 'warn',
    sentence: [
      liveText(live.length, Nodes.length),
      ...(problems.length === 0 ? [whole] : problems),
      ...differText(differing, live.length),
    ].join('; '),
  }
}

const namesOf = (entries: readonly NodeEntry[]): readonly string[] => entries.map(({ Name = '' }) => Name)

function liveText(live: number, all: number): string {
  if (live < all) return `${live} of ${all} nodes ${live === 1 ? 'is' : 'are'} live`
  return all === 1 ? '1 node is live' : all === 2 ? 'both nodes are live' : `all ${all} nodes are live`
}

function differText(differing: readonly string[], live: number): readonly string[] {
  if (differing.length === 0) return []
  if (differing.length === live) return ['the nodes have different configurations']
  return [`${names(differing)} ${differing.length === 1 ? 'has' : 'have'} another configuration than most`]
}

const counted = (n: number): string => count(n, 'network monitor')

/** `2 network monitors have no owner: Sql/postgres/orders, App/http/shop` */
function problemOf(
  keys: readonly string[],
  more: number,
  [one, many]: readonly [one: string, many: string],
): readonly string[] {
  const count = keys.length + more
  if (count === 0) return []
  const first = keys.slice(0, maxNamed)
  const left = count - first.length
  return [`${counted(count)} ${count === 1 ? one : many}: ${names(first)}${left > 0 ? ` and ${left} more` : ''}`]
}

/** The whole answer. */
export function renderNodes(answer: GetNodesResponse, target: string, now: Date, output: ListOutput): string {
  const { Nodes = [], Unowned = [], MoreUnowned = 0, OnIsolated = [], MoreOnIsolated = 0 } = answer
  const around = {
    target,
    unowned: Unowned,
    moreUnowned: MoreUnowned,
    onIsolated: OnIsolated,
    moreOnIsolated: MoreOnIsolated,
  }
  return nodes.render(
    Nodes.map((entry) => nodeRow(entry, now)),
    around,
    {
      ...output,
      ...(Nodes.length > 0 ? { headline: nodesHeadline(answer) } : {}),
    },
  )
}

export const forgottenNodes = document<{ readonly name: string; readonly forgotten: true }>()({
  around: { target: string },
  rows: 'nodes',
  members: { name: string, forgotten: flag },
})
