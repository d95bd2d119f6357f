import type { connect, Socket } from 'node:net'
import type { Client, SearchOptions } from 'ldapts'
import { partingMs, within } from '../../database/index.ts'
import { type Hide, quoted, said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Asked, meaningOf, resultFault } from './codes.ts'
import { LdapFrames, type LdapResult, resultOf } from './message.ts'

/** Attribute names in small letters: servers write them as they like. */
export type Entry = { readonly name: string; readonly attributes: Readonly<Record<string, readonly string[]>> }

export type LdapSession = {
  /** Throws ProbeError `auth` when the server refuses. */
  readonly bind: (user: string, password: string) => Promise<void>
  /** One entry; undefined when the server shows none. `user` is for messages. */
  readonly read: (base: string, attributes: readonly string[], user: string | undefined) => Promise<Entry | undefined>
  /** How many entries a search finds, counted up to `most`. */
  readonly count: (base: string, filter: string, most: number, user: string | undefined) => Promise<number>
  readonly close: () => Promise<void>
}

type Way = { readonly socket: Socket; readonly address: string; readonly hide: Hide; readonly msLeft: () => number }

export const loadLdapts = () => import('ldapts')

/**
 * Speaks LDAP over a socket, which stays the caller's to destroy: it ends what runs on the server too.
 * Every call throws ProbeError, or what the socket threw.
 */
export async function openLdap({ socket, address, hide, msLeft }: Way): Promise<LdapSession> {
  const { Client, FilterParser, PresenceFilter } = await loadLdapts()
  const trouble = sifted(socket, address, hide)
  // The driver would connect again by itself, where nobody has looked at the certificate.
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
  const attempt = async <T>(asked: Omit<Asked, 'address' | 'hide'>, work: () => Promise<T>): Promise<T> => {
    if (trouble.cause !== undefined) throw trouble.cause
    if (socket.destroyed) throw new ProbeError('protocol', `${address} closed the connection`)
    try {
      return await work()
    } catch (error) {
      throw trouble.cause ?? meaning(error, { ...asked, address, hide })
    }
  }
  const search = async (base: string, options: SearchOptions, user: string | undefined) =>
    await attempt({ doing: 'search', user, base }, async () => {
      const timeLimit = Math.max(1, Math.ceil(msLeft() / 1_000))
      return (await client.search(base, { derefAliases: 'never', timeLimit, ...options })).searchEntries
    })
  return {
    bind: (user, password) => attempt({ doing: 'bind', user }, () => client.bind(user, password)),
    read: async (base, attributes, user) => {
      const filter = new PresenceFilter({ attribute: 'objectClass' })
      const [found] = await search(base, { scope: 'base', filter, attributes: [...attributes] }, user)
      if (!found) return undefined
      const { dn, ...rest } = found
      const lists = Object.entries(rest).map(
        ([name, value]) => [name.toLowerCase(), [value].flat().map((one) => said(one, 256))] as const,
      )
      return { name: said(dn), attributes: Object.fromEntries(lists) }
    },
    count: async (base, filter, most, user) => {
      let parsed: ReturnType<typeof FilterParser.parseString>
      try {
        parsed = FilterParser.parseString(filter)
      } catch {
        throw new ProbeError('data', `the filter ${quoted(filter, 120)} cannot be read: write it like (uid=alice)`)
      }
      const options = { scope: 'sub', filter: parsed, attributes: ['1.1'], sizeLimit: most } as const
      return (await search(base, { ...options, attributes: [...options.attributes] }, user)).length
    },
    close: async () => {
      if (!socket.destroyed && used) await within(client.unbind(), partingMs)
      socket.destroy()
    },
  }
}

/** Lets the driver hear whole and sound messages only; anything else ends the connection, and is kept. */
function sifted(socket: Socket, address: string, hide: Hide): { readonly cause: unknown } {
  const frames = new LdapFrames(address)
  const trouble: { cause: unknown } = { cause: undefined }
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...given: unknown[]) => boolean
  const hear = (chunk: Buffer): boolean => {
    try {
      for (const message of frames.take(chunk)) {
        const notice = resultOf(message)
        if (notice?.id === 0) throw disconnected(notice, address, hide)
        emit('data', message)
      }
    } catch (error) {
      trouble.cause ??=
        error instanceof ProbeError ? error : new ProbeError('protocol', `${address} answered what cannot be read`)
      socket.destroy()
    }
    return true
  }
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    if (event === 'data') return hear(given[0] as Buffer)
    if (event !== 'error') return emit(event, ...given)
    trouble.cause ??= given[0]
    // Late errors come when the driver has let go already, and must not be fatal.
    return socket.listenerCount('error') > 0 ? emit(event, ...given) : true
  }
  return trouble
}

/** RFC 4511, 4.4.1: what a server says before it hangs up. */
function disconnected(notice: LdapResult, address: string, hide: Hide): ProbeError {
  const { fault, words, details } = meaningOf(notice, hide)
  return new ProbeError(fault, `${address} hung up: it ${words}`, details)
}

/** The driver's errors carry the result code and the server's text; those of the connection only a text. */
function meaning(error: unknown, asked: Asked): unknown {
  if (error instanceof ProbeError) return error
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  const text = typeof message === 'string' ? message : ''
  if (typeof code === 'number') return resultFault({ code, text: withoutCode(text) }, asked)
  if (/^(?:Connection closed|Socket error)/.test(text)) {
    return new ProbeError('protocol', `${asked.address} closed the connection before it answered`)
  }
  return new ProbeError('protocol', `${asked.address} does not answer as LDAP does`, [asked.hide(text)])
}

/** The driver writes the result code behind the server's text. */
function withoutCode(text: string): string {
  const at = text.lastIndexOf('Code: 0x')
  return at >= 0 && /^[0-9a-f]+$/i.test(text.slice(at + 'Code: 0x'.length)) ? text.slice(0, at).trimEnd() : text
}
