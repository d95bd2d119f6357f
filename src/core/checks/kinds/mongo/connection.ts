import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import { type DatabaseTarget, databaseTarget, figure, text, tlsSetting } from '../../database/index.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  checksOn,
  latencySetting,
  notChecked,
  type Result,
  signInSettings,
  warn,
} from '../../engine/index.ts'
import { type Command, type Doc, loadMongodb, openMongo, UnavailableError } from './driver.ts'

/** The threshold of the sign-in, `hello` and `ping`. */
export const connectLatency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'How long the sign-in, `hello` and `ping` may each take',
)

/** The settings of the connection. */
export const connectSettings = {
  ...signInSettings(
    ['mongodb', 'mongodb+srv'],
    'mongodb://user@host:port/database: a single node; the database is the one that authenticates the user (by default admin). Without a user, svc does not sign in',
  ),
  tls: tlsSetting,
  latency: connectLatency,
} as const satisfies SettingsSpec

export const mongoPort = 27_017

/** The target in the settings; the user is empty if there is no sign-in. Throws like `databaseTarget`. */
export function mongoTarget(
  settings: Pick<Values<typeof connectSettings>, 'url' | 'password' | 'tls'>,
): DatabaseTarget {
  const url = new URL(settings.url)
  if (url.username !== '') return databaseTarget(settings, mongoPort)
  url.username = 'nobody'
  return { ...databaseTarget({ ...settings, url: url.href }, mongoPort), user: '' }
}

/** The role that a node reports. `other`: in a replica set, but not serving clients. */
type Role = 'primary' | 'secondary' | 'arbiter' | 'standalone' | 'mongos' | 'other'
export type MongoNode = {
  readonly role: Role
  /** Empty outside a replica set. */
  readonly set: string
  /** The primary that the node reports; empty if there is none. */
  readonly primary: string
}

function nodeOf(hello: Doc): MongoNode {
  if (figure(hello, 'ok') !== 1) throw new ProbeError('protocol', 'the answer to `hello` is not valid')
  const set = text(hello, 'setName')
  return { role: roleOf(hello, set), set, primary: text(hello, 'primary', 128) }
}

function roleOf(hello: Doc, set: string): Role {
  if (hello.msg === 'isdbgrid') return 'mongos'
  // Started for a replica set that was never initiated.
  if (set === '') return hello.isreplicaset === true ? 'other' : 'standalone'
  if (hello.isWritablePrimary === true) return 'primary'
  if (hello.secondary === true) return 'secondary'
  return hello.arbiterOnly === true ? 'arbiter' : 'other'
}

export const inSet = ({ role }: MongoNode): boolean => role === 'primary' || role === 'secondary'
/** An arbiter has neither users nor data. */
export const holdsData = ({ role }: MongoNode): boolean => role !== 'arbiter' && role !== 'other'
/** A secondary accepts writes only from its primary. */
export const isWritable = ({ role }: MongoNode): boolean =>
  role === 'primary' || role === 'standalone' || role === 'mongos'

/** A connection to one node. */
export type MongoConnection = Connection & {
  readonly address: string
  /** Empty if there is no sign-in. */
  readonly user: string
  /** For example `as monitor over TLS`. */
  readonly identity: string
  readonly command: Command
  /** Sends `hello`, the first command, whose answer sets `node`. */
  readonly greet: () => Promise<MongoNode>
  readonly node: MongoNode
  /** The answer to `replSetGetStatus`, which is sent once. */
  readonly setStatus: () => Promise<Doc>
}

/** Gives the checks of mongo their types. */
export const onMongo = checksOn<MongoConnection>()
export const limitOnMongo = limitsOn<MongoConnection>()

/** Loads the driver first, so that the time of the node does not include it. */
export async function prepareMongo(settings: Values<typeof connectSettings>): Promise<DatabaseTarget> {
  const target = mongoTarget(settings)
  await loadMongodb()
  return target
}

/** Connects and, if there is a user, signs in. Throws ProbeError, or a socket's error. */
export async function connectMongo(
  { ip, address, signal, commit }: AddressTurn,
  _: unknown,
  { msLeft, files }: CheckContext,
  target: DatabaseTarget,
): Promise<MongoConnection> {
  const { user } = target
  const { command, encrypted, close } = await openMongo(target, { ip, address, signal, msLeft, files }).catch(
    (cause: unknown) => {
      // A refused sign-in is not repeated at another address.
      if (cause instanceof ProbeError && cause.fault === 'auth' && !signal.aborted) commit()
      throw cause
    },
  )
  const who = user === '' ? 'without a sign-in' : `as ${user}`
  let node: MongoNode | undefined
  let status: Promise<Doc> | undefined
  return {
    address,
    user,
    identity: sanitize(encrypted ? `${who} over TLS` : who, 100),
    command,
    // A command after a broken connection fails on its own.
    usable: true,
    close,
    greet: async () => {
      node = nodeOf(await command({ hello: 1 }))
      return node
    },
    get node() {
      if (!node) throw new Error('the checks of mongo begin with hello')
      return node
    },
    setStatus: () => {
      status ??= command({ replSetGetStatus: 1 })
      return status
    },
  }
}

/** Why a check cannot observe: the account's privileges, or the type of server. */
export type Obstacle = {
  readonly obstacle: string
  readonly details: readonly string[] | undefined
  /** True if only the account lacks a privilege. */
  readonly denied: boolean
}

/** The role that an account needs, and the database in which it is granted. */
type Grant = { readonly role: string; readonly database: string }
export const clusterMonitor: Grant = { role: 'clusterMonitor', database: 'admin' }

/** The command that grants the role. */
export const grantOf = ({ role, database }: Grant, user = '<account>'): string =>
  `db.grantRolesToUser(${JSON.stringify(sanitize(user, 64))}, [{role: "${role}", db: "${database}"}])`

/**
 * Reads, and converts a missing privilege or command to an observation: neither a failure of the database nor a silent
 * ok.
 */
export async function permitted<Observation>(
  { user }: Pick<MongoConnection, 'user'>,
  grant: Grant,
  read: () => Promise<Observation>,
): Promise<Observation | Obstacle> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof UnavailableError) return obstacleOf(error, user, grant)
    throw error
  }
}

export function obstacleOf({ message, why }: UnavailableError, user: string, grant: Grant): Obstacle {
  if (why === 'absent') return { obstacle: message, details: undefined, denied: false }
  const next = user === '' ? 'next: add a user to the url, and set password:' : grantOf(grant, user)
  return { obstacle: message, details: [next], denied: true }
}

/** A server that does not have the command is a warning too: no privilege would help, and nothing is broken. */
export const warnOf = <const Name extends string>(
  check: Name,
  { obstacle, details, denied }: Obstacle,
): Result<Name> =>
  denied ? notChecked(check, 'permission', obstacle, { details }) : warn(check, `not checked: ${obstacle}`)
