import type { connect, Socket } from 'node:net'
import type { Client, Entry, PasswordPolicyValue, SearchOptions } from 'ldapts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { closeTimeoutMs, settleWithin } from '../../database/index.ts'
import { type LdapRequest, meaningOf, resultFault } from './codes.ts'
import { LdapFrames, type LdapResult, resultOf } from './message.ts'

/** Attribute names are in lower case, because servers differ in their spelling. */
export type LdapEntry = { readonly name: string; readonly attributes: Readonly<Record<string, readonly string[]>> }

export type LdapSession = {
  /**
   * Returns what the password policy of the server says of the account, if the server offers to (`passwordPolicy`).
   * Throws ProbeError `auth` if it refuses.
   */
  readonly bind: (user: string, password: string, offered: Offered) => Promise<PasswordPolicyValue | undefined>
  /** Reads one entry; undefined if the server returns none. `user` is for messages only. */
  readonly read: (
    base: string,
    attributes: readonly string[],
    user: string | undefined,
  ) => Promise<LdapEntry | undefined>
  /** The values of an attribute of an entry, unaltered; none if the entry or the attribute is not there. */
  readonly readBytes: (base: string, attribute: string, user: string | undefined) => Promise<readonly Buffer[]>
  /** Up to two entries below `base` that have one of these values of an attribute. */
  readonly find: (
    base: string,
    values: readonly (readonly [attribute: string, value: string])[],
    attributes: readonly string[],
    user: string | undefined,
  ) => Promise<readonly LdapEntry[]>
  /** The entries that a search finds, up to `most`. */
  readonly list: (
    at: { readonly base: string; readonly scope: 'one' | 'sub'; readonly filter: string },
    attributes: readonly string[],
    most: number,
    user: string | undefined,
  ) => Promise<readonly LdapEntry[]>
  /** The number of entries that a search finds, up to `most`. */
  readonly count: (base: string, filter: string, most: number, user: string | undefined) => Promise<number>
  readonly close: () => Promise<void>
}

/** The controls and extensions that a server lists in its root entry, by their OIDs. */
export type Offered = ReadonlySet<string>

/** The control of the password policy. */
const passwordPolicy = '1.3.6.1.4.1.42.2.27.8.5.1'

type LdapWay = {
  readonly socket: Socket
  readonly address: string
  readonly redact: Redact
  readonly msLeft: () => number
}

export const loadLdapts = () => import('ldapts')

/** The filter of one comparison, as nearly all are. Whether it is valid is known without the driver. */
const comparison = /^\([A-Za-z][\w;.-]*[~<>]?=[^()\\\0]*\)$/

/** Rejects with ProbeError `data` for a text that is no filter. Loads the driver only for filters with parts. */
export async function checkFilter(filter: string): Promise<void> {
  if (!comparison.test(filter)) await parseFilter(filter)
}

/** A filter as the driver reads it. Rejects with ProbeError `data` for a text that is none. */
async function parseFilter(filter: string) {
  const { FilterParser } = await loadLdapts()
  try {
    return FilterParser.parseString(filter)
  } catch {
    throw new ProbeError('data', `the filter ${quote(filter, 120)} is not valid: write it in the form (uid=alice)`)
  }
}

/**
 * Speaks LDAP over a socket that the caller destroys, which also ends running requests on the server. Every call throws
 * ProbeError, or the socket's error.
 */
export async function openLdap({ socket, address, redact, msLeft }: LdapWay): Promise<LdapSession> {
  const { Client, EqualityFilter, FilterParser, OrFilter, PasswordPolicyControl, PresenceFilter } = await loadLdapts()
  const trouble = sifted(socket, address, redact)
  // The driver would reconnect by itself, over a connection whose certificate nobody has verified.
  let used = false
  const createConnection = (): Socket => {
    if (used) throw new ProbeError('protocol', `${address} closed the connection`)
    used = true
    return socket
  }
  const client: Client = new Client({
    url: 'ldap://connected',
    createConnection: createConnection as unknown as typeof connect,
  })
  type Request = Omit<LdapRequest, 'address' | 'redact' | 'policyError'>
  const attempt = async <T>(
    request: Request,
    work: () => Promise<T>,
    policyError: () => number | undefined = () => undefined,
  ): Promise<T> => {
    if (trouble.cause !== undefined) throw trouble.cause
    if (socket.destroyed) throw new ProbeError('protocol', `${address} closed the connection`)
    try {
      return await work()
    } catch (error) {
      throw trouble.cause ?? meaning(error, { ...request, address, redact, policyError: policyError() })
    }
  }
  const search = async (base: string, options: SearchOptions, user: string | undefined) =>
    await attempt({ doing: 'search', user, base }, async () => {
      const timeLimit = Math.max(1, Math.ceil(msLeft() / 1_000))
      return (await client.search(base, { derefAliases: 'never', timeLimit, ...options })).searchEntries
    })
  return {
    bind: async (user, password, offered) => {
      if (!offered.has(passwordPolicy)) {
        await attempt({ doing: 'bind', user }, () => client.bind(user, password))
        return undefined
      }
      const policy = new PasswordPolicyControl()
      await attempt(
        { doing: 'bind', user },
        () => client.bind(user, password, policy),
        () => policy.value?.error,
      )
      return policy.value
    },
    read: async (base, attributes, user) => {
      const filter = new PresenceFilter({ attribute: 'objectClass' })
      const [entry] = await search(base, { scope: 'base', filter, attributes: [...attributes] }, user)
      return entry && readable(entry)
    },
    readBytes: async (base, attribute, user) => {
      const filter = new PresenceFilter({ attribute: 'objectClass' })
      const only = [attribute]
      const options = { scope: 'base', filter, attributes: only, explicitBufferAttributes: only } as const
      const [entry] = await search(base, options, user)
      const { dn: _, ...rest } = entry ?? { dn: '' }
      return Object.values(rest)
        .flat()
        .map((value) => (Buffer.isBuffer(value) ? value : Buffer.from(value, 'latin1')))
    },
    find: async (base, values, attributes, user) => {
      const filters = values.map(([attribute, value]) => new EqualityFilter({ attribute, value }))
      const filter = new OrFilter({ filters })
      const options = { scope: 'sub', filter, attributes: [...attributes], sizeLimit: 2 } as const
      return (await search(base, { ...options, attributes: [...attributes] }, user)).map(readable)
    },
    list: async ({ base, scope, filter }, attributes, most, user) => {
      const options = { scope, filter: FilterParser.parseString(filter), sizeLimit: most } as const
      return (await search(base, { ...options, attributes: [...attributes] }, user)).map(readable)
    },
    count: async (base, filter, most, user) => {
      const options = { scope: 'sub', filter: await parseFilter(filter), attributes: ['1.1'], sizeLimit: most } as const
      return (await search(base, { ...options, attributes: [...options.attributes] }, user)).length
    },
    close: async () => {
      if (!socket.destroyed && used) await settleWithin(client.unbind(), closeTimeoutMs)
      socket.destroy()
    },
  }
}

function readable({ dn, ...rest }: Entry): LdapEntry {
  const lists = Object.entries(rest).map(
    ([name, value]) => [name.toLowerCase(), [value].flat().map((one) => sanitize(one, 256))] as const,
  )
  return { name: sanitize(dn), attributes: Object.fromEntries(lists) }
}

/** Passes only complete, valid messages to the driver. Any other data ends the connection, and its error is kept. */
function sifted(socket: Socket, address: string, redact: Redact): { readonly cause: unknown } {
  const frames = new LdapFrames(address)
  const trouble: { cause: unknown } = { cause: undefined }
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean
  const receive = (chunk: Buffer): boolean => {
    try {
      for (const message of frames.take(chunk)) {
        const notice = resultOf(message)
        if (notice?.id === 0) throw disconnected(notice, address, redact)
        emit('data', message)
      }
    } catch (error) {
      trouble.cause ??=
        error instanceof ProbeError ? error : new ProbeError('protocol', `${address} sent an unreadable answer`)
      socket.destroy()
    }
    return true
  }
  socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === 'data') return receive(args[0] as Buffer)
    if (event !== 'error') return emit(event, ...args)
    trouble.cause ??= args[0]
    // An error after the driver has removed its listeners must not be fatal.
    return socket.listenerCount('error') > 0 ? emit(event, ...args) : true
  }
  return trouble
}

/** The notice that a server sends before it disconnects (RFC 4511, 4.4.1). */
function disconnected(notice: LdapResult, address: string, redact: Redact): ProbeError {
  const { fault, words, details } = meaningOf(notice, redact)
  return new ProbeError(fault, `${address} ended the connection: it ${words}`, details)
}

/**
 * Explains an error of the driver. Most carry the result code and the server's text; connection errors carry only a
 * text.
 */
function meaning(error: unknown, request: LdapRequest): unknown {
  if (error instanceof ProbeError) return error
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  const text = typeof message === 'string' ? message : ''
  if (typeof code === 'number') return resultFault({ code, text: withoutCode(text) }, request)
  if (/^(?:Connection closed|Socket error)/.test(text)) {
    return new ProbeError('protocol', `${request.address} closed the connection before it answered`)
  }
  return new ProbeError('protocol', `${request.address} does not answer as LDAP does`, [request.redact(text)])
}

/** The driver appends the result code to the server's text. */
function withoutCode(text: string): string {
  const at = text.lastIndexOf('Code: 0x')
  return at >= 0 && /^[0-9a-f]+$/i.test(text.slice(at + 'Code: 0x'.length)) ? text.slice(0, at).trimEnd() : text
}
