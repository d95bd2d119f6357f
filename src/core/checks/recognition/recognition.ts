import { hostPort } from '../../base/net/connect.ts'

/** A TCP port of this machine that accepts connections, and the address to reach it at. */
export type OpenPort = { readonly host: string; readonly port: number }

/** The certificate of a service. */
export type IdentifiedTls = {
  /** Whether this machine trusts it for the address, which certificates seldom contain. */
  readonly trusted: boolean
  /** Whether this machine trusts its chain, regardless of names and dates. */
  readonly chainTrusted: boolean
  readonly expired: boolean
  /** The first name that it is valid for, if that is a host name. */
  readonly name: string | undefined
  /** SHA-256, as the setting `fingerprint` takes it. */
  readonly fingerprint: string
}

/** The facts of this machine that proposals use. */
export type Machine = {
  /** Its domain, such as `example.com`: that of its name, otherwise the first one in which the system looks up names. */
  readonly domain: string | undefined
  /** Whether a name has an address of this machine. */
  readonly isHere: (name: string) => Promise<boolean>
}

/** A server that a kind has recognized. */
export type RecognizedServer = OpenPort & {
  /** Present if TLS begins with the first byte. */
  readonly tls?: IdentifiedTls | undefined
  /** The first bytes that it sent. */
  readonly reply: Buffer
  readonly machine: Machine
  /** Ends discovery. */
  readonly signal: AbortSignal
  /**
   * Sends a question on another connection of the same form, or none to a server that speaks first. Resolves with the first
   * bytes of the reply, or all until it is whole, if any come.
   */
  readonly ask: (question: Buffer | undefined, isWhole?: (reply: Buffer) => boolean) => Promise<Buffer | undefined>
  /**
   * Sends a question once a whole banner has arrived, on another connection without TLS, because mail servers turn away
   * those that talk too soon. Resolves with the whole reply, or undefined if it does not arrive in time.
   */
  readonly askAfterBanner: (question: Buffer) => Promise<Buffer | undefined>
}

/** A monitor as in svc.yaml. */
export type ProposedEntry = { readonly kind: string; readonly name: string } & Readonly<Record<string, unknown>>

/** The monitors that a kind proposes for a server. */
export type Proposed = {
  /** Needs no secret. */
  readonly entry: ProposedEntry
  /** The reason, or what to pay attention to: a comment above it. */
  readonly note?: string | undefined
  /** A deeper check that needs an account: a comment below it. */
  readonly deeper?: ProposedEntry | undefined
}

/** How two connections show that they lead to different servers, as behind a balancer. */
export type Pool = {
  /** The question whose replies differ. Absent: the greeting of the protocol. */
  readonly question?: Buffer
  /** Whether two replies, one after the other, are of different servers. What varies at one server does not count. */
  readonly differ: (earlier: Buffer, later: Buffer) => boolean
}

/**
 * How discovery recognizes a server of a kind: by what it sends unprompted, or by its reply to the smallest harmless
 * greeting of its protocol. No greeting signs in or changes anything.
 */
export type Recognition = {
  /** The protocol, which begins the names of proposed monitors: `ssh-22`. */
  readonly name: string
  /** Absent when the server speaks first. */
  readonly greeting?: Buffer
  /** The server is recognized at the standard ports of its kind alone: elsewhere its reply says too little. */
  readonly onlyAtStandardPorts?: true
  /** The greeting is also sent over TLS. */
  readonly underTls?: true
  /** Whether the first bytes that a server sent are those of this protocol. */
  readonly is: (reply: Buffer, isStandardPort: boolean) => boolean
  /** Whether a reply is complete. Absent: the first bytes are enough. */
  readonly isWhole?: (reply: Buffer) => boolean
  /** The name of the program in its reply, which then begins the name of the monitor. */
  readonly product?: (reply: Buffer) => string | undefined
  /** Whether the reply is that of a port that expects TLS. */
  readonly expectsTls?: (reply: Buffer) => boolean
  /** How a pool of such servers shows itself; `alike` if they answer alike before a sign-in, or have no `samples`. */
  readonly pool: Pool | 'alike'
  /** The monitors to propose for a server that was recognized. */
  readonly propose: (server: RecognizedServer, name: string) => Proposed | Promise<Proposed>
}

/** The bytes that hexadecimal digits stand for; spaces are ignored. */
export const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

/** Whether a reply begins with a text. */
export const begins =
  (text: string) =>
  (reply: Buffer): boolean =>
    reply.toString('latin1').startsWith(text)

/** The first line of a reply. */
export const firstLine = (reply: Buffer): string => reply.toString('latin1').split(/\r?\n/, 1)[0] ?? ''

/** A password as a proposal refers to it. */
export const proposedPassword = { file: '/run/credentials/svc/PASSWORD' }
/** An account with that password. */
export const account = { username: 'monitor', password: proposedPassword }

/** One note of several, or none. */
export const noteOf = (...notes: readonly (string | undefined)[]): string | undefined =>
  notes.filter((note) => note !== undefined).join('; ') || undefined

/** A pool whose members name themselves in a reply: the part that a pattern captures. */
export const namedBy = (pattern: RegExp, question?: Buffer): Pool => {
  const nameIn = (reply: Buffer): string | undefined => pattern.exec(reply.toString('latin1'))?.[1]
  const differ = (...[earlier, later]: readonly [Buffer, Buffer]): boolean => {
    const [one, other] = [nameIn(earlier), nameIn(later)]
    return one !== undefined && other !== undefined && one !== other
  }
  return question === undefined ? { differ } : { question, differ }
}

/** A greeting, if the server does not speak first, and what the answer contains that recognizes it. */
export type Exchange = { readonly greeting?: Buffer; readonly expect: string }

/** The settings that send a greeting. */
function sending(greeting: Buffer | undefined): Readonly<Record<string, string>> {
  const text = greeting?.toString('latin1')
  if (greeting === undefined || text === undefined) return {}
  if (/^[\x20-\x7e\r\n]*$/.test(text)) return { send: text }
  return {
    sendHex:
      greeting
        .toString('hex')
        .match(/.{1,8}/g)
        ?.join(' ') ?? '',
  }
}

/**
 * A monitor of a server by the exchange that recognized it. The connection alone would prove nothing: the kernel accepts it
 * for a frozen server, too.
 */
export function answerEntry(server: RecognizedServer, name: string, { greeting, expect }: Exchange): ProposedEntry {
  const { host, port, tls } = server
  const at = { kind: tls ? 'tls' : 'tcp', name, host, port, ...trustOf(server).settings }
  return { ...at, ...sending(greeting), expect }
}

/** For servers that reveal nothing before a sign-in: without an account, only their answer to a greeting is checked. */
export const behindSignIn =
  (kind: string, exchange: Exchange, settings: (address: string) => Readonly<Record<string, unknown>>) =>
  (server: RecognizedServer, name: string): Proposed & { readonly deeper: ProposedEntry } => ({
    entry: answerEntry(server, name, exchange),
    note: trustOf(server).note,
    deeper: { kind, name, ...settings(hostPort(server.host, server.port)), password: proposedPassword },
  })

/** For servers that anonymous callers can check, and more thoroughly with an account. */
export function openToAll(
  kind: string,
  { host, port }: OpenPort,
  name: string,
  more: Readonly<Record<string, unknown>> = {},
): Proposed {
  const entry = { kind, name, host, port, ...more }
  return { entry, deeper: { ...entry, ...account } }
}

/**
 * The settings with which svc trusts the certificate of a server: the name in it, or its fingerprint if no CA that
 * this machine trusts has signed it. None for an expired one, so that its monitor fails.
 */
export function trustOf({ tls }: Pick<RecognizedServer, 'tls'>): {
  readonly settings: Readonly<Record<string, unknown>>
  readonly note?: string | undefined
} {
  if (!tls || tls.trusted || tls.expired) return { settings: {} }
  if (tls.chainTrusted && tls.name !== undefined) return { settings: { servername: tls.name } }
  const note =
    'this machine does not trust its certificate, which is pinned: a new one fails until fingerprint names it'
  return { settings: { fingerprint: tls.fingerprint }, note }
}

/**
 * The encryption of a server that may begin TLS after its banner: `implicit` where TLS begins with the first byte,
 * `upgrade` where the reply to `question` offers it, otherwise `off`.
 */
export async function encryptionOf(
  server: RecognizedServer,
  { question, upgrade }: { readonly question: string; readonly upgrade: string },
): Promise<Readonly<Record<string, unknown>>> {
  if (server.tls) return { tls: 'implicit', ...trustOf(server).settings }
  const reply = await server.askAfterBanner(Buffer.from(`${question}\r\n`))
  const isOffered = reply && /^.{0,4}[ \t]{0,8}(?:AUTH TLS|STARTTLS)\b/im.test(reply.toString('latin1'))
  return { tls: isOffered ? upgrade : 'off' }
}
