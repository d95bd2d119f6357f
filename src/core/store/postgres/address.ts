import { bareHost } from '../../base/loopback.ts'

/** A server that may have the store. */
export type ServerAddress = {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string
  readonly port: number
}

/** The parts of a postgres:// URL, decoded. */
export type PostgresAddress = {
  readonly user: string
  readonly password: string | undefined
  /** At least one. The host is empty if the URL names none. */
  readonly servers: readonly ServerAddress[]
  /** Empty if the URL names none. */
  readonly database: string
  readonly parameters: Readonly<Record<string, string>>
}

const defaultPort = 5_432
const maxPort = 65_535

/**
 * Parses a URL in the form of libpq, which is wider than that of a web address: several hosts, separated by commas, each
 * with its port; the folder of a Unix socket as a percent-encoded host, or as the parameter `host` beside an empty host.
 * Throws URIError for a wrong percent-encoding. Undefined for everything else that is not such a URL.
 */
export function parsePostgresUrl(url: string): PostgresAddress | undefined {
  const parts = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(?:#.*)?$/i.exec(url)
  if (!parts) return undefined
  const [, account = '', hosts = '', database = '', query = ''] = parts
  const [, user = '', password] = /^([^:]*)(?::(.*))?$/s.exec(account) ?? []
  const { host: folder, port, ...parameters } = Object.fromEntries(new URLSearchParams(query))
  if ((folder !== undefined || port !== undefined) && hosts !== '') return undefined
  const servers = folder === undefined ? hosts.split(',').map(serverOf) : folder.split(',').map(socketOf(port))
  if (servers.includes(undefined)) return undefined
  return {
    user: decodeURIComponent(user),
    password: password === undefined ? undefined : decodeURIComponent(password) || undefined,
    servers: servers.filter((server) => server !== undefined),
    database: decodeURIComponent(database),
    parameters,
  }
}

export const isSocket = ({ host }: ServerAddress): boolean => host.startsWith('/')

function serverOf(text: string): ServerAddress | undefined {
  const [, name, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{0,5}))?$/.exec(text) ?? []
  if (name === undefined || /[\s\\^|<>"]/.test(name)) return undefined
  return withPort(bareHost(decodeURIComponent(name)), port)
}

const socketOf = (port: string | undefined) => (folder: string) =>
  folder.startsWith('/') ? withPort(folder, port) : undefined

function withPort(host: string, text: string | undefined): ServerAddress | undefined {
  const port = text === undefined || text === '' ? defaultPort : Number(text)
  return Number.isInteger(port) && port > 0 && port <= maxPort ? { host, port } : undefined
}

/** The URL as shown to people: without password, and without parameters except the one that names a socket. */
export function shownPostgresUrl(url: string): string | undefined {
  try {
    const address = parsePostgresUrl(url)
    if (!address) return undefined
    const { user, servers, database } = address
    const account = user === '' ? '' : `${encodeURIComponent(user)}@`
    const path = `/${encodeURIComponent(database)}`
    if (servers.every(isSocket)) return `postgres://${account}${path}?host=${servers.map(({ host }) => host).join(',')}`
    return `postgres://${account}${servers.map(shownServer).join(',')}${path}`
  } catch {
    return undefined
  }
}

const shownServer = ({ host, port }: ServerAddress): string => {
  const name = host.includes(':') ? `[${host}]` : host.startsWith('/') ? encodeURIComponent(host) : host
  return port === defaultPort ? name : `${name}:${port}`
}
