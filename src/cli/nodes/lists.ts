import { showDuration } from '../../core/base/format.ts'
import type { GetNodesResponse, NodeEntry } from '../../core/protocol/index.ts'
import { dateTime, document, flag, oneOf, orNull, string } from '../render/document.ts'
import { type Headline, type ListOutput, list } from '../render/list.ts'
import { type CellText, moment, names } from '../render/table.ts'

/** A node as the list shows it. */
export type ListedNode = {
  readonly name: string
  readonly state: 'live' | 'out' | 'left'
  /** When it last renewed its row. */
  readonly seenAt: Date | undefined
  readonly isolated: boolean
  /** Whether it runs the monitors of the network. */
  readonly holds: boolean
  readonly configuration: string | undefined
  readonly differs: boolean
  readonly version: string | undefined
  readonly url: string | undefined
  readonly peer: string | undefined
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
  holds: entry.Holds ?? false,
  configuration: entry.Configuration,
  differs: entry.Differs ?? false,
  version: entry.Version,
  url: entry.Url,
  peer: entry.Peer,
  startedAt: entry.StartedAt,
  current: entry.Current ?? false,
  now,
})

function stateCell({ state, seenAt, isolated, now }: ListedNode): CellText {
  // Without the date if that is today.
  const at = seenAt === undefined ? '' : moment(seenAt).replace(moment(now).slice(0, 11), '')
  if (state === 'out') return { text: `out since ${at}`, style: 'bad' }
  if (state === 'left') return { text: `left at ${at}`, style: 'dim' }
  return isolated ? { text: 'live, isolated', style: 'caution' } : 'live'
}

const upCell = ({ state, startedAt, now }: ListedNode): string =>
  state === 'live' && startedAt ? showDuration(Math.max(0, now.getTime() - startedAt.getTime())) : ''

export const nodes = list<ListedNode>()({
  around: ['target'],
  documentOnly: { target: string },
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
    { key: 'holds', is: flag, title: 'LEASE', cell: ({ holds }) => (holds ? 'holds it' : '') },
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
    { key: 'peer', is: orNull(string) },
    { key: 'current', is: flag },
  ],
})

/** How many nodes are live, and which of them runs the monitors of the network. */
export function nodesHeadline({ Nodes = [] }: GetNodesResponse): Headline {
  const live = Nodes.filter(({ State }) => State === 'Live')
  if (live.length === 0) {
    const none = Nodes.length === 1 ? 'the only node is not live' : `none of the ${Nodes.length} nodes is live`
    return { mark: 'fail', sentence: `${none}: nobody runs the monitors` }
  }
  const holder = live.find(({ Holds }) => Holds)
  const unreadable = namesOf(Nodes.filter(({ Version }) => Version === undefined))
  const differing = namesOf(live.filter(({ Differs }) => Differs))
  const isWell =
    unreadable.length === 0 &&
    differing.length === 0 &&
    Nodes.every(({ State, Isolated }) => State !== 'Out' && Isolated !== true)
  return {
    mark: holder === undefined ? 'fail' : isWell ? 'ok' : 'warn',
    sentence: [
      liveText(live.length, Nodes.length),
      holder === undefined
        ? 'nobody holds the lease of the network monitors'
        : `${holder.Name} runs the network monitors${holder.Isolated ? ', and is isolated' : ''}`,
      ...(unreadable.length > 0 ? [`the row of ${names(unreadable)} in the store is unreadable`] : []),
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

/** The whole answer. */
export function renderNodes(answer: GetNodesResponse, target: string, now: Date, output: ListOutput): string {
  const { Nodes = [] } = answer
  return nodes.render(
    Nodes.map((entry) => nodeRow(entry, now)),
    { target },
    { ...output, ...(Nodes.length > 0 ? { headline: nodesHeadline(answer) } : {}) },
  )
}

export const forgottenNodes = document<{ readonly name: string; readonly forgotten: true }>()({
  around: { target: string },
  rows: 'nodes',
  members: { name: string, forgotten: flag },
})
