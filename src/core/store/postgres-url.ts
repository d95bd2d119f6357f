import { Fault } from '../errors.ts'
import { readNamed } from '../files/index.ts'
import { isLoopbackHost } from '../loopback.ts'
import { reason, shownStore } from './path.ts'

/** The connection parameters of the server, and its name for people. */
export type PostgresTarget = {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  readonly password: string | undefined
  readonly ssl: false | { readonly rejectUnauthorized: true; readonly ca?: string }
  /** True when there is no TLS because the host is loopback. The connection's address must be loopback too. */
  readonly loopbackOnly: boolean
  /** The URL without the password. */
  readonly label: string
}

type Env = Readonly<Record<string, string | undefined>>

const defaultPort = 5_432

/**
 * Parses a postgres:// URL. The password should be in the file that SVC_STORE_PASSWORD_FILE names, because other
 * processes may see a URL. Beyond loopback, TLS with a trusted certificate is the default, and `?sslmode=disable` turns
 * it off. Reads the files that the URL and the environment name. Throws Fault `Local`, without repeating possible secrets.
 */
export async function postgresTarget(store: string, env: Env): Promise<PostgresTarget> {
  if (!URL.canParse(store)) throw wrong('is not a URL', 'Percent-encode special characters as %XX.')
  const url = new URL(store)
  const { sslmode, sslrootcert } = parameters(url)
  const host = decoded(url.hostname).replace(/^\[(.*)\]$/, '$1')
  if (host === '') throw wrong('has no host')
  if (url.username === '') throw wrong('has no user')
  const user = decoded(url.username)
  const file = env.SVC_STORE_PASSWORD_FILE
  const loopbackOnly = sslmode === undefined && isLoopbackHost(host)
  const plain = sslmode === 'disable' || loopbackOnly
  return {
    host,
    port: url.port === '' ? defaultPort : Number(url.port),
    user,
    database: decoded(url.pathname.slice(1)) || user,
    password: file ? await passwordIn(file) : decoded(url.password) || undefined,
    ssl: plain
      ? false
      : {
          rejectUnauthorized: true,
          ...(sslrootcert === undefined ? {} : { ca: await text(sslrootcert, 'sslrootcert') }),
        },
    loopbackOnly,
    label: shownStore(store),
  }
}

const form = 'Example: postgres://user@host:5432/database'
const wrong = (what: string, hint = form): Fault =>
  new Fault('Local', `The store's PostgreSQL address ${what}`, { hints: [hint] })

function parameters(url: URL): { readonly sslmode?: string; readonly sslrootcert?: string } {
  const query = Object.fromEntries(url.searchParams)
  const { sslmode, sslrootcert, ...others } = query
  if (Object.keys(others).length > 0) {
    throw wrong('has an unsupported parameter', 'The supported parameters are sslmode and sslrootcert.')
  }
  if (sslmode !== undefined && sslmode !== 'disable' && sslmode !== 'verify-full') {
    throw wrong('has an unsupported sslmode', 'Use verify-full (the default beyond loopback) or disable.')
  }
  return { ...(sslmode === undefined ? {} : { sslmode }), ...(sslrootcert === undefined ? {} : { sslrootcert }) }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw wrong('has a "%" that is not followed by two hexadecimal digits')
  }
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
