import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../base/errors.ts'
import type { KeeperLog } from '../../store/index.ts'
import {
  afterLook,
  answerTimeoutMs,
  machineKey,
  type NodeRow,
  type OtherNodes,
  sendsAlone,
  soleNode,
  unknownNodes,
} from '../../watch/nodes/index.ts'
import { familiesOfNode, type NodesPart, retryMs, soleNodePart } from './nodes.ts'

/** How often it looks who is live. Milliseconds. */
const lookEveryMs = 3_000

/** The reader of the rows of nodes in a store that is too new. */
export type RowsOfNodes = { readonly list: () => Promise<readonly NodeRow[]>; readonly close: () => Promise<void> }

/**
 * A node that is too old for the schema of the store that it shares with others. It runs every monitor and stores nothing, as
 * one that does not reach the store. But it reads who is live, and sends messages only while nobody else does. `reason`: why
 * nothing is stored.
 */
export function outdatedNodePart({
  node,
  reason,
  rows,
  log = () => {},
}: {
  /** Its name. */
  readonly node: string
  readonly reason: string
  readonly rows: RowsOfNodes
  readonly log?: KeeperLog | undefined
}): NodesPart {
  const now = (): number => performance.now()
  const stop = new AbortController()
  let others: OtherNodes = unknownNodes
  let latest: readonly NodeRow[] = []
  let statement = ''
  let looking: Promise<void> = Promise.resolve()

  const isAlone = (): boolean => sendsAlone(others, now())

  const look = async (): Promise<void> => {
    const answer = await Promise.race([
      rows.list().catch(() => undefined),
      pause(answerTimeoutMs, undefined, { signal: stop.signal, ref: false }),
    ])
    if (stop.signal.aborted) return
    latest = answer ?? []
    const live = latest.filter(({ isLive }) => isLive)
    others = afterLook(others, answer && live.length > 0, now())
    say(live)
  }

  const say = (live: readonly NodeRow[]): void => {
    const names = live.map(({ node: name, facts }) => `${name} (svc ${facts?.version ?? 'of an unknown version'})`)
    const alone = isAlone() ? 'sends messages by itself from now on: no other node is live' : statement
    const what = names.length > 0 ? `sends no messages: that is up to ${names.join(', ')}` : alone
    if (what !== statement) log({ level: 'warn', msg: `node ${node} ${what}` })
    statement = what
  }

  const lookAgain = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await look()
      await pause(lookEveryMs, undefined, { signal: stop.signal, ref: false })
    }
  }

  return {
    ...soleNodePart,
    lease: {
      // Who is missing is up to the others.
      ...soleNode,
      isShared: true,
      node,
      keyOf: (key) => machineKey(node, key),
      leads: isAlone,
      problem: () => reason,
      retryMs,
      writeStates: async () => ({ why: reason }),
      writeOutbox: async () => {
        throw new Fault('Unavailable', reason)
      },
      voice: () => (isAlone() ? 'alone' : 'silent'),
    },
    answers: () => {
      // It ends when it is cancelled.
      looking = lookAgain().catch(() => {})
    },
    metrics: async () => familiesOfNode(node, latest, { isCoordinated: false, holds: false }),
    cancel: () => stop.abort(),
    close: async () => {
      stop.abort()
      await looking
      await rows.close()
    },
  }
}
