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
  /** Sends a question on another connection of the same form. Resolves with the first bytes of the reply, if any come. */
  readonly ask: (question: Buffer) => Promise<Buffer | undefined>
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

/** A monitor that checks the port alone. */
export const portEntry = ({ host, port }: OpenPort, name: string): ProposedEntry => ({ kind: 'tcp', name, host, port })

/** For servers that reveal nothing before a sign-in: without an account, only the port is checked. */
export const behindSignIn =
  (kind: string, settings: (address: string) => Readonly<Record<string, unknown>>): Recognition['propose'] =>
  (server, name) => ({
    entry: portEntry(server, name),
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
