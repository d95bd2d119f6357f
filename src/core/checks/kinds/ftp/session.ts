import type { Socket } from 'node:net'
import { bareHost } from '../../../base/loopback.ts'
import { type Chain, whyDistrusted } from '../../../base/net/certificates.ts'
import { connectTcp, hostPort } from '../../../base/net/connect.ts'
import { createRedactor, noRedaction, type Redact } from '../../../base/net/text.ts'
import { connectTls } from '../../../base/net/tls-connect.ts'
import { readTrust } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Secret, Values } from '../../../base/settings/index.ts'
import { type AddressTurn, type CheckContext, type Connection, includes } from '../../engine/index.ts'
import { type Backlog, type Files, type FolderConnection, maxEntries, type Trip } from '../../folders/index.ts'
import { Control, type FtpLink, type LinkTls, wait } from './control.ts'
import { type Passive, transfer } from './data.ts'
import { backlog, dataSocket, entries, listed } from './list.ts'
import { ftpPortOf, type ftpSettings, type TlsMode } from './settings.ts'
import { changeFolder, expected, folderOf, maySendPassword, signIn } from './sign-in.ts'

/** The server's banner. */
export type FtpBanner = {
  readonly address: string
  readonly code: number
  /** The reply, quoted. */
  readonly text: string
  /** Milliseconds since the start of connecting. */
  readonly ms: number
}

/** The encryption of the control connection. */
export type FtpEncryption = {
  readonly address: string
  readonly chain: Chain
  /** Why svc does not trust this server; undefined if it does. No credentials go to an untrusted server. */
  readonly distrust: string | undefined
}

type Stage = 'banner' | 'TLS'
/** The stages before the sign-in, in the order of the conversation. */
export const stagesOf = {
  explicit: ['banner', 'TLS'],
  implicit: ['TLS', 'banner'],
  off: ['banner'],
} as const satisfies Readonly<Record<TlsMode, readonly [Stage, ...Stage[]]>>

/** Milliseconds reserved before the deadline, so that svc can report what did not answer. */
const reserveMs = 150

type Account = {
  /** Undefined if the session does not sign in. */
  readonly password: string | undefined
  readonly redact: Redact
}

type ConnectionSettings = Values<
  Pick<
    typeof ftpSettings,
    'host' | 'port' | 'tls' | 'servername' | 'caFile' | 'fingerprint' | 'clientCert' | 'clientKey' | 'dataHosts'
  >
>
type AccountSettings = {
  readonly host: string
  readonly port?: number | undefined
  readonly tls: TlsMode
  readonly username?: string | undefined
  readonly password?: Secret | undefined
}

/** Reads the password before connecting: without it, a connection would be useless. */
export async function readAccount(settings: AccountSettings, context: CheckContext): Promise<Account> {
  if (settings.username === undefined || !includes(context.mode, 'Standard'))
    return { password: undefined, redact: noRedaction }
  context.step('sign-in', hostPort(settings.host, ftpPortOf(settings)))
  const password = await settings.password?.reveal(context.files)
  return { password, redact: password === undefined ? noRedaction : createRedactor([password]) }
}

/** An FTP session at one address. Its checks advance it: the stages, the sign-in, a passive mode, the folders. */
export class FtpSession implements Connection, FolderConnection {
  readonly address: string
  /** The passive mode that delivered a listing; all later data connections use it. */
  way: Passive | undefined
  /** True if the server offers a passive mode that does not work. */
  hasBrokenWay = false
  /** The first refusal of a passive mode: `EPSV was answered with "500 …"`. */
  refusedWay: string | undefined
  trip?: Trip
  readonly #at: AddressTurn
  readonly #settings: ConnectionSettings
  readonly #context: CheckContext
  readonly #account: Account
  readonly #start: number
  readonly #sockets = new Set<Socket>()
  #first: FtpBanner | FtpEncryption | undefined
  #control: Control | undefined
  #tls: (LinkTls & { readonly socket: Socket }) | undefined
  /** Set once all stages have succeeded. */
  #link: FtpLink | undefined
  /** True if either side refuses to continue; then the session ends without QUIT. */
  #isRefused = false
  #signedInMs: number | undefined
  #home: string | undefined
  /** Whether the server offers MLSD; queried once. */
  #offersMachineListings: Promise<boolean> | undefined

  private constructor(at: AddressTurn, settings: ConnectionSettings, context: CheckContext, account: Account) {
    this.address = at.address
    this.#at = at
    this.#settings = settings
    this.#context = context
    this.#account = account
    this.#start = context.now()
    at.signal.addEventListener('abort', this.#destroy, { once: true })
  }

  /** Connects and observes the first stage, which `stages` yields. Throws ProbeError, or a socket's error. */
  static readonly open = async (
    at: AddressTurn,
    settings: ConnectionSettings,
    context: CheckContext,
    account: Account,
  ): Promise<FtpSession> => {
    const session = new FtpSession(at, settings, context, account)
    try {
      session.#first = await session.#enter(stagesOf[settings.tls][0])
      return session
    } catch (error) {
      session.#end()
      throw error
    }
  }

  get ip(): string {
    return this.#at.ip
  }

  get usable(): boolean {
    return this.#control?.usable ?? !this.#at.signal.aborted
  }

  /** True once svc may send a user name: the server has greeted with 220, and its certificate is trusted. */
  get isOpen(): boolean {
    return this.#link !== undefined
  }

  /** The certificate chain of an open session with TLS. */
  get chain(): Chain | undefined {
    return this.#link?.tls?.chain
  }

  /** True from the sign-in on, also after the server has ended the session. */
  get isSignedIn(): boolean {
    return this.#signedInMs !== undefined
  }

  get hasFolders(): boolean {
    return this.isSignedIn
  }

  /** The duration of the sign-in, in milliseconds. */
  get signedInMs(): number {
    return this.#signedInMs ?? 0
  }

  /** The control connection of an open session. */
  get link(): FtpLink {
    if (this.#link === undefined) throw new Error('the FTP session is not open')
    return this.#link
  }

  /** Observes the stages before the sign-in. Stops after the first stage that rules out continuing. */
  async *stages(step: (stage: Stage) => void): AsyncGenerator<FtpBanner | FtpEncryption> {
    const [first, ...others] = stagesOf[this.#settings.tls]
    yield this.#first ?? (await this.#enter(first))
    for (const stage of others) {
      if (this.#isRefused) return
      step(stage)
      yield await this.#enter(stage)
    }
    if (this.#isRefused || this.#control === undefined) return
    this.#link = {
      control: this.#control,
      target: this.#at,
      context: this.#context,
      redact: this.#account.redact,
      keep: this.#keep,
      dataHosts: this.#settings.dataHosts ?? [],
      tls: this.#tls,
    }
  }

  async #enter(stage: Stage): Promise<FtpBanner | FtpEncryption> {
    if (stage === 'TLS') {
      const encryption = await this.#encrypt()
      this.#isRefused = encryption.distrust !== undefined
      return encryption
    }
    const { control, banner } = await this.#greet(this.#tls?.socket ?? (await this.#connect()))
    this.#control = control
    this.#isRefused = banner.code !== 220
    return banner
  }

  async #connect(): Promise<Socket> {
    const { ip, port, signal } = this.#at
    return this.#keep(await connectTcp(ip, port, signal))
  }

  async #greet(socket: Socket): Promise<{ readonly control: Control; readonly banner: FtpBanner }> {
    const { now, msLeft } = this.#context
    const control = new Control(socket, this.address, this.#account.redact)
    const { code, text } = await control.first(Math.max(1, msLeft() - reserveMs, msLeft() / 2))
    const banner = { address: this.address, code, text: control.display({ code, text }), ms: now() - this.#start }
    return { control, banner }
  }

  async #encrypt(): Promise<FtpEncryption> {
    const { tls, servername, host: name } = this.#settings
    const begin = async (): Promise<Socket> => {
      if (tls === 'implicit') return await this.#connect()
      const control = this.#control ?? (await this.#greetAgain())
      this.#control = undefined
      return await authTls(control, wait(this.#context))
    }
    let socket: Socket | undefined = tls === 'explicit' ? await begin() : undefined
    const host = servername ?? bareHost(name)
    const trust = await readTrust(this.#settings, this.#context.files)
    const open = async (): Promise<Socket> => {
      const first = socket
      socket = undefined
      // The chain may be read again, with other roots. The steps that lead to TLS are then repeated on a new
      // connection.
      return first ?? (await begin())
    }
    const connection = await connectTls(this.#at, { host, ...trust, verify: true, date: this.#context.date, open })
    const secure = this.#keep(connection.socket)
    let session: Buffer | undefined
    // In TLS 1.3, the session ticket for data connections arrives after the handshake, and the server may renew it.
    secure.on('session', (ticket) => {
      session = ticket
    })
    const { chain } = connection
    this.#tls = { host, chain, session: () => session ?? secure.getSession(), socket: secure, client: trust.client }
    const distrust = whyDistrusted(chain)
    if (tls === 'explicit') this.#control = new Control(secure, this.address, this.#account.redact)
    return { address: this.address, chain, distrust }
  }

  async #greetAgain(): Promise<Control> {
    const { control, banner } = await this.#greet(await this.#connect())
    if (banner.code !== 220) throw new ProbeError('refused', `${this.address} greeted with ${banner.text}`)
    return control
  }

  /**
   * Signs in. Throws ProbeError: `auth` only for a refused sign-in; `data` if the password must not be sent in clear
   * text.
   */
  async signIn(username: string, insecureFtp: boolean) {
    const { address, link } = this
    const { password, redact } = this.#account
    const isEncrypted = link.tls !== undefined
    this.#isRefused = true
    if (password !== undefined && !maySendPassword(this.ip, isEncrypted, insecureFtp)) {
      const advice = 'use tls: explicit, or insecureFtp on a trusted network'
      throw new ProbeError('data', `the password is not sent to ${address} over plain ftp: ${advice}`)
    }
    const start = this.#context.now()
    // An anonymous sign-in conventionally sends an e-mail address as the password (RFC 1635).
    await signIn(link, username, password ?? 'svc@')
    this.#isRefused = false
    const ms = this.#context.now() - start
    this.#signedInMs = ms
    return { address, username: redact(username), isEncrypted, ms }
  }

  /** Requests the working folder of the session; undefined if the reply does not name one. */
  async workingFolder() {
    const { address, link } = this
    const reply = await link.control.ask('PWD', wait(this.#context))
    this.#home = folderOf(reply)
    const folder = this.#home === undefined ? undefined : link.redact(this.#home)
    return { address, folder, reply: link.control.display(reply) }
  }

  async backlog(folder: string, ending: string): Promise<Backlog> {
    const { way, isMachine } = await this.#listings()
    await this.#changeFolder(folder)
    return await backlog(this.link, way, isMachine, ending)
  }

  async files(folder: string | undefined): Promise<Files> {
    const { link } = this
    const { way, isMachine } = await this.#listings()
    await this.#changeFolder(folder)
    return {
      write: async (name, send) => void (await transfer(link, `STOR ${name}`, await dataSocket(link, way), { send })),
      read: async (name, max) => (await transfer(link, `RETR ${name}`, await dataSocket(link, way), { max })).bytes,
      rename: async (from, to) => {
        await expected(link, `RNFR ${from}`, [350])
        await expected(link, `RNTO ${to}`, [250])
      },
      remove: async (name) => void (await expected(link, `DELE ${name}`, [200, 250])),
      names: async () => (await entries(link, way, isMachine)).files.map((file) => file.name),
      isListed: async (name) => {
        const { lines, cut } = await listed(link, way, isMachine ? 'MLSD' : 'LIST')
        // Every format of a listing ends with the name.
        return lines.some((line) => line.endsWith(name)) || (cut || lines.length > maxEntries ? undefined : false)
      },
    }
  }

  /** The way to request listings. Throws ProbeError `dependency` if no passive mode works. */
  async #listings(): Promise<{ readonly way: Passive; readonly isMachine: boolean }> {
    const { way } = this
    if (way === undefined) throw new ProbeError('dependency', 'not checked: no data connection was made')
    this.#offersMachineListings ??= this.#features()
    return { way, isMachine: await this.#offersMachineListings }
  }

  async #features(): Promise<boolean> {
    const { control } = this.link
    const { code, text } = await control.ask('FEAT', wait(this.#context))
    if (code !== 211) return false
    if (/^[ \t]*UTF8\b/im.test(text)) await control.ask('OPTS UTF8 ON', wait(this.#context))
    return /^[ \t]*ML(?:ST|SD)\b/im.test(text)
  }

  async #changeFolder(folder: string | undefined): Promise<void> {
    if (this.#home !== undefined) await changeFolder(this.link, this.#home)
    if (folder !== undefined) await changeFolder(this.link, folder)
  }

  async close(): Promise<void> {
    if (this.#link?.control.usable && !this.#isRefused && !this.#at.signal.aborted)
      await this.#link.control.ask('QUIT', Math.min(500, wait(this.#context))).catch(() => {})
    this.#end()
  }

  #end(): void {
    this.#at.signal.removeEventListener('abort', this.#destroy)
    this.#destroy()
  }

  readonly #keep = <S extends Socket>(socket: S): S => {
    this.#sockets.add(socket)
    if (this.#at.signal.aborted) socket.destroy()
    return socket
  }

  readonly #destroy = (): void => {
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** Negotiates TLS with the server, and releases the socket for it. */
async function authTls(control: Control, ms: number): Promise<Socket> {
  const reply = await control.ask('AUTH TLS', ms)
  if (reply.code === 234) return control.detach()
  throw new ProbeError('tls', `${control.address} does not offer AUTH TLS: ${control.display(reply)}`, [
    'on a trusted network, set tls: off; port 990 usually expects TLS from the first byte (tls: implicit)',
  ])
}
