import { Fault } from '../../base/errors.ts'
import { readNamed } from '../../base/files/index.ts'
import { isLoopbackHost } from '../../base/loopback.ts'
import { reason, shownStore } from '../path.ts'
import { isSocket, type PostgresAddress, parsePostgresUrl, type ServerAddress } from './address.ts'

/** A server that may have the store, and how svc connects to it. */
export type PostgresHost = ServerAddress & {
  readonly ssl: false | { readonly rejectUnauthorized: true; readonly ca?: string }
  /** True when there is no TLS because the host is loopback. The connection's address must be loopback too. */
  readonly loopbackOnly: boolean
}

/** The connection parameters of the store, and its name for people. */
export type PostgresTarget = {
  /** At least one. */
  readonly hosts: readonly PostgresHost[]
  readonly user: string
  readonly database: string
  readonly password: string | undefined
  /** Whether a server that accepts no writes is passed over. */
  readonly writable: boolean
  /** The most connections of this process. */
  readonly connections: number
  /** The URL without the password. */
  readonly label: string
}

type Env = Readonly<Record<string, string | undefined>>

const defaultConnections = 10
const mostConnections = 500

/**
 * Parses a postgres:// URL. The password should be in the file that SVC_STORE_PASSWORD_FILE names, because other
 * processes may see a URL. Beyond loopback, TLS with a trusted certificate is the default, and `?sslmode=disable` turns
 * it off. Reads the files that the URL and the environment name. Throws Fault `Local`, without repeating possible secrets.
 */
export async function postgresTarget(store: string, env: Env): Promise<PostgresTarget> {
  const { user, password, servers, database, parameters } = addressIn(store)
  const { sslmode, sslrootcert, connections, target_session_attrs: attributes } = supported(parameters)
  if (servers.some(({ host }) => host === '')) throw invalidUrl('has no host', `${form}, or ${socketForm}`)
  if (user === '') throw invalidUrl('has no user')
  const file = env.SVC_STORE_PASSWORD_FILE
  const ca = sslrootcert === undefined ? {} : { ca: await text(sslrootcert, 'sslrootcert') }
  const hosts = servers.map((server): PostgresHost => {
    const loopbackOnly = sslmode === undefined && !isSocket(server) && isLoopbackHost(server.host)
    const plain = sslmode === 'disable' || isSocket(server) || loopbackOnly
    return { ...server, loopbackOnly, ssl: plain ? false : { rejectUnauthorized: true, ...ca } }
  })
  return {
    hosts,
    user,
    database: database || user,
    password: file ? await passwordIn(file) : password,
    writable: attributes === undefined ? hosts.length > 1 : attributes === 'read-write',
    connections: connections === undefined ? defaultConnections : Number(connections),
    label: shownStore(store),
  }
}

const form = 'Example: postgres://user@host:5432/database'
const socketForm = 'for a Unix socket postgres://user@/database?host=/run/postgresql'
const invalidUrl = (what: string, hint = form): Fault =>
  new Fault('Local', `The store's PostgreSQL address ${what}`, { hints: [hint] })

function addressIn(store: string): PostgresAddress {
  try {
    const address = parsePostgresUrl(store)
    if (address) return address
  } catch {
    throw invalidUrl('has a "%" that is not followed by two hexadecimal digits')
  }
  throw invalidUrl('is not a URL', 'Percent-encode special characters as %XX.')
}

const names = ['sslmode', 'sslrootcert', 'connections', 'target_session_attrs'] as const
type Parameters = { readonly [name in (typeof names)[number]]?: string }

function supported(parameters: Readonly<Record<string, string>>): Parameters {
  if (Object.keys(parameters).some((name) => !(names as readonly string[]).includes(name))) {
    throw invalidUrl(
      'has an unsupported parameter',
      'The supported parameters are host and port (of a Unix socket), sslmode, sslrootcert, connections and target_session_attrs.',
    )
  }
  const { sslmode, connections, target_session_attrs: attributes }: Parameters = parameters
  if (sslmode !== undefined && sslmode !== 'disable' && sslmode !== 'verify-full') {
    throw invalidUrl('has an unsupported sslmode', 'Use verify-full (the default beyond loopback) or disable.')
  }
  if (connections !== undefined && !isCount(connections)) {
    throw invalidUrl('has an unusable number of connections', `Use a number from 1 to ${mostConnections}.`)
  }
  if (attributes !== undefined && attributes !== 'read-write' && attributes !== 'any') {
    throw invalidUrl(
      'has unsupported target_session_attrs',
      'Use read-write (the default with several hosts) or any (the default with one).',
    )
  }
  return parameters
}

const isCount = (text: string): boolean => {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  return count >= 1 && count <= mostConnections
}

const passwordIn = async (file: string): Promise<string> => {
  const password = (await text(file, 'SVC_STORE_PASSWORD_FILE')).replace(/\r?\n$/, '')
  if (password === '') throw new Fault('Local', 'The file that SVC_STORE_PASSWORD_FILE names is empty')
  return password
}

/** Bytes. A bundle of certificates has at most a few hundred thousand. */
const maxBytes = 4 * 1_024 * 1_024

async function text(file: string, parameter: string): Promise<string> {
  try {
    return await readNamed(file, maxBytes)
  } catch (error) {
    throw new Fault('Local', `The file that ${parameter} names cannot be read: ${reason(error)}`)
  }
}
