import { type Clock, clockOf, figure, text } from '../../database/index.ts'
import type { CheckContext } from '../../engine/index.ts'
import type { Command, Doc } from './driver.ts'
import { Unlooked } from './faults.ts'
import type { Node } from './node.ts'

export const part = (doc: Doc | undefined, name: string): Doc => {
  const value = doc?.[name]
  return typeof value === 'object' && value !== null ? (value as Doc) : {}
}
export const parts = (doc: Doc | undefined, name: string): readonly Doc[] => {
  const value = doc?.[name]
  return Array.isArray(value) ? value.map((one) => part({ one }, 'one')) : []
}
const moment = (doc: Doc, name: string): number | undefined => {
  const value = doc[name]
  return value instanceof Date && !Number.isNaN(value.getTime()) ? value.getTime() : undefined
}

/** The account, or the kind of server, keeps a check from looking. */
export type Hidden = {
  readonly see: 'hidden'
  readonly check: string
  readonly told: string
  /** The role that would let it, where one would. */
  readonly role: string | undefined
}

/** A look that turns a missing permission into an observation. */
export const allowed =
  <L>(check: string, role: string, look: (command: Command, node: Node) => Promise<L>) =>
  async (command: Command, node: Node): Promise<L | Hidden> => {
    try {
      return await look(command, node)
    } catch (error) {
      if (!(error instanceof Unlooked)) throw error
      return { see: 'hidden', check, told: error.message, role: error.why === 'permission' ? role : undefined }
    }
  }

export type Member = {
  readonly name: string
  readonly self: boolean
  /** The number of its state: 1 primary, 2 secondary, 7 arbiter. */
  readonly state: number
  readonly stateName: string
  readonly healthy: boolean
  readonly told: string
}
export type Members = { readonly see: 'members'; readonly set: string; readonly members: readonly Member[] }
const ask = { replSetGetStatus: 1 }

export async function lookAtMembers(command: Command): Promise<Members> {
  const status = await command(ask)
  return {
    see: 'members',
    set: text(status, 'set'),
    members: parts(status, 'members').map((one) => ({
      name: text(one, 'name', 128),
      self: one.self === true,
      state: figure(one, 'state') ?? 6,
      stateName: text(one, 'stateStr') || 'in an unknown state',
      healthy: figure(one, 'health') === 1,
      told: text(one, 'lastHeartbeatMessage', 200) || text(one, 'infoMessage', 200),
    })),
  }
}

export type Lag = {
  readonly see: 'lag'
  /** False where there is no primary to compare with. */
  readonly led: boolean
  /** Milliseconds behind the primary, and those that the member is configured to be. */
  readonly behind: readonly { readonly name: string; readonly ms: number; readonly delayMs: number }[]
}
/** A primary looks at all of its secondaries, a secondary at itself. */
export async function lookAtLag(command: Command, node: Node): Promise<Lag> {
  const members = parts(await command(ask), 'members')
  const primary = members.find((one) => figure(one, 'state') === 1)
  const newest = primary && moment(primary, 'optimeDate')
  if (newest === undefined) return { see: 'lag', led: false, behind: [] }
  const delays = await delaysOf(command)
  const followers = members.filter(
    (one) => figure(one, 'state') === 2 && (node.role === 'primary' || one.self === true),
  )
  return {
    see: 'lag',
    led: true,
    behind: followers.map((one) => {
      const name = text(one, 'name', 128)
      return { name, ms: Math.max(0, newest - (moment(one, 'optimeDate') ?? 0)), delayMs: delays.get(name) ?? 0 }
    }),
  }
}

/** Delays by member; nothing where the configuration may not be seen. */
async function delaysOf(command: Command): Promise<ReadonlyMap<string, number>> {
  const config = await command({ replSetGetConfig: 1 }).catch((error: unknown) => {
    if (error instanceof Unlooked) return {}
    throw error
  })
  return new Map(
    parts(part(config, 'config'), 'members').map((one) => [
      text(one, 'host', 128),
      (figure(one, 'secondaryDelaySecs') ?? figure(one, 'slaveDelay') ?? 0) * 1_000,
    ]),
  )
}

export type Oplog = {
  readonly see: 'oplog'
  readonly windowMs: number
  /** Percent; undefined where the size may not be seen. */
  readonly full: number | undefined
}
export async function lookAtOplog(command: Command): Promise<Oplog> {
  const at = async (order: 1 | -1): Promise<number> => {
    const found = await command(
      { find: 'oplog.rs', sort: { $natural: order }, limit: 1, singleBatch: true, projection: { ts: 1 } },
      'local',
    )
    const [first] = parts(part(found, 'cursor'), 'firstBatch')
    // A timestamp: its upper half counts seconds.
    return figure(part(first, 'ts'), 't') ?? 0
  }
  const oldest = await at(1)
  const newest = await at(-1)
  const stats = await command({ collStats: 'oplog.rs' }, 'local').catch((error: unknown): Doc => {
    if (error instanceof Unlooked) return {}
    throw error
  })
  const most = figure(stats, 'maxSize') ?? 0
  return {
    see: 'oplog',
    windowMs: Math.max(0, newest - oldest) * 1_000,
    full: most > 0 ? ((figure(stats, 'size') ?? 0) / most) * 100 : undefined,
  }
}

/** A node that tells no time has no clock to judge. */
export const lookAtClock =
  ({ date }: Pick<CheckContext, 'date'>) =>
  async (command: Command): Promise<Clock> => {
    const sent = date().getTime()
    const answer = await command({ hello: 1 })
    const heard = date().getTime()
    const told = moment(answer, 'localTime')
    if (told === undefined) throw new Unlooked('absent', 'this server does not tell its time', [])
    return clockOf(told, sent, heard)
  }

/** The sections that take long, or are long. */
const status = { serverStatus: 1, metrics: 0, locks: 0, repl: 0, tcmalloc: 0, opLatencies: 0, transactions: 0 }

export type Connections = { readonly see: 'connections'; readonly current: number; readonly available: number }
export async function lookAtConnections(command: Command): Promise<Connections> {
  const connections = part(await command(status), 'connections')
  const current = figure(connections, 'current')
  const available = figure(connections, 'available')
  if (current === undefined || available === undefined) {
    throw new Unlooked('absent', 'this server does not tell how many connections it takes', [])
  }
  return { see: 'connections', current, available }
}

export type Load = {
  readonly see: 'load'
  /** Undefined where the server has no such thing: a mongos, another storage engine. */
  readonly queued: number | undefined
  readonly cache: { readonly used: number; readonly dirty: number; readonly most: number } | undefined
}
export async function lookAtLoad(command: Command): Promise<Load> {
  const seen = await command(status)
  const cache = part(part(seen, 'wiredTiger'), 'cache')
  const most = figure(cache, 'maximum bytes configured')
  return {
    see: 'load',
    queued: figure(part(part(seen, 'globalLock'), 'currentQueue'), 'total'),
    cache: most
      ? {
          most,
          used: figure(cache, 'bytes currently in the cache') ?? 0,
          dirty: figure(cache, 'tracked dirty bytes in the cache') ?? 0,
        }
      : undefined,
  }
}
