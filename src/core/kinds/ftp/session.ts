import type { Socket } from 'node:net'
import { type AddressTurn, type CheckContext, type Connection, includes } from '../../engine/index.ts'
import type { Backlog, Files, FolderConnection, Trip } from '../../folders/index.ts'
import { type Chain, readCaFile, whyDistrusted } from '../../net/certificates.ts'
import { connectTcp, hostPort } from '../../net/connect.ts'
import { createRedactor, noRedaction, type Redact } from '../../net/text.ts'
import { connectTls } from '../../net/tls-connect.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Secret, Values } from '../../settings/index.ts'
import { Control, type FtpLink, type LinkTls, wait } from './control.ts'
import { type Passive, transfer } from './data.ts'
import { backlog, dataSocket, entries } from './list.ts'
import { type ftpSettings, portOf, type TlsMode } from './settings.ts'
import { expected, folderOf, mayHear, signIn } from './sign-in.ts'

/** What the server says first. */
export type FtpBanner = {
  readonly address: string
  readonly code: number
  /** The reply, quoted. */
  readonly text: string
  /** Milliseconds since connecting began. */
  readonly ms: number
}

/** The encryption that the server agreed to. */
export type FtpEncryption = {
  readonly address: string
  readonly chain: Chain
  /** Why nothing may be sent to this server. */
  readonly distrust: string | undefined
}

type Stage = 'banner' | 'TLS'
/** What a server shows before an account is named, in the order of the conversation. */
export const stagesOf = {
  explicit: ['banner', 'TLS'],
  implicit: ['TLS', 'banner'],
  off: ['banner'],
} as const satisfies Readonly<Record<TlsMode, readonly [Stage, ...Stage[]]>>

/** Milliseconds kept back from the deadline, so that what did not answer can be reported. */
const reserveMs = 150

type Account = {
  /** Undefined where nobody signs in. */
  readonly password: string | undefined
  readonly redact: Redact
}

type ConnectionSettings = Values<
  Pick<typeof ftpSettings, 'host' | 'port' | 'tls' | 'servername' | 'caFile' | 'dataHosts'>
>
type AccountSettings = {
  readonly host: string
  readonly port?: number | undefined
  readonly tls: TlsMode
  readonly username?: string | undefined
  readonly password?: Secret | undefined
}

/** Reads the password before anything is opened: without it there is nothing to open for. */
export async function readAccount(settings: AccountSettings, context: CheckContext): Promise<Account> {
  if (settings.username === undefined || !includes(context.mode, 'Standard'))
    return { password: undefined, redact: noRedaction }
  context.step('sign-in', hostPort(settings.host, portOf(settings)))
  const password = await settings.password?.reveal()
  return { password, redact: password === undefined ? noRedaction : createRedactor([password]) }
}

/** An FTP session at one address. Its checks advance it: the stages, the sign-in, a passive way, the folders. */
export class FtpSession implements Connection, FolderConnection {
  readonly address: string
  /** The passive way over which a listing has come: that of all further data connections. */
  way: Passive | undefined
  /** True where a passive way is offered and does not work. */
  hasBrokenWay = false
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
  /** Set once the server has passed all stages. */
  #link: FtpLink | undefined
  /** True where one side refuses to go on: then the session ends without a QUIT. */
  #isRefused = false
  #signedInMs: number | undefined
  #home: string | undefined
  /** Whether the server offers MLSD; asked once. */
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

  /** Connects and observes the first stage; `stages` yields it. Throws ProbeError, or what a socket throws. */
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

  /** True once an account may be named: the server has greeted with 220, and its certificate is trusted. */
  get isOpen(): boolean {
    return this.#link !== undefined
  }

  /** The certificates of an open session with TLS. */
  get chain(): Chain | undefined {
    return this.#link?.tls?.chain
  }

  get isSignedIn(): boolean {
    return this.#signedInMs !== undefined && this.usable
  }

  get hasFolders(): boolean {
    return this.isSignedIn
  }

  /** How long the sign-in took. */
  get signedInMs(): number {
    return this.#signedInMs ?? 0
  }

  /** The control connection of an open session. */
  get link(): FtpLink {
    if (this.#link === undefined) throw new Error('the FTP session is not open')
    return this.#link
  }

  /** What the server shows before an account is named. Ends at the first stage that forbids to go on. */
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
    const { tls, servername, host: name, caFile } = this.#settings
    const begin = async (): Promise<Socket> => {
      if (tls === 'implicit') return await this.#connect()
      const control = this.#control ?? (await this.#greetAgain())
      this.#control = undefined
      return await authTls(control, wait(this.#context))
    }
    let socket: Socket | undefined = tls === 'explicit' ? await begin() : undefined
    const host = servername ?? name.replace(/^\[(.*)\]$/, '$1')
    const ca = await readCaFile(caFile)
    const open = async (): Promise<Socket> => {
      const first = socket
      socket = undefined
      // The chain may be read again, with other roots: the way up to TLS then begins anew.
      return first ?? (await begin())
    }
    const connection = await connectTls(this.#at, { host, ca, verify: true, date: this.#context.date, open })
    const secure = this.#keep(connection.socket)
    let session: Buffer | undefined
    // TLS 1.3 sends what a data connection resumes with after the handshake, and may renew it.
    secure.on('session', (ticket) => {
      session = ticket
    })
    const { chain } = connection
    this.#tls = { host, chain, session: () => session ?? secure.getSession(), socket: secure }
    const distrust = whyDistrusted(chain)
    if (tls === 'explicit') this.#control = new Control(secure, this.address, this.#account.redact)
    return { address: this.address, chain, distrust }
  }

  async #greetAgain(): Promise<Control> {
    const { control, banner } = await this.#greet(await this.#connect())
    if (banner.code !== 220) throw new ProbeError('refused', `${this.address} said ${banner.text}`)
    return control
  }

  /**
   * Signs in. Throws ProbeError: `auth` for a refused sign-in, and only for that; `data` where the password may not be
   * sent in the clear.
   */
  async signIn(username: string, insecureFtp: boolean) {
    const { address, link } = this
    const { password, redact } = this.#account
    const isEncrypted = link.tls !== undefined
    this.#isRefused = true
    if (password !== undefined && !mayHear(this.ip, isEncrypted, insecureFtp)) {
      const advice = 'use tls: explicit, or insecureFtp where the network is trusted'
      throw new ProbeError('data', `the password is not sent to ${address} over plain ftp: ${advice}`)
    }
    const start = this.#context.now()
    // What anonymous sign-in has for a password is an address by custom (RFC 1635).
    await signIn(link, username, password ?? 'svc@')
    this.#isRefused = false
    const ms = this.#context.now() - start
    this.#signedInMs = ms
    return { address, username: redact(username), isEncrypted, ms }
  }

  /** Asks for the folder of the session; undefined where the reply names none. */
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
    }
  }

  /** How listings are asked for. Throws ProbeError `dependency` where no passive way works. */
  async #listings(): Promise<{ readonly way: Passive; readonly isMachine: boolean }> {
    const { way } = this
    if (way === undefined) throw new ProbeError('dependency', 'not looked at: no data connection was made')
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
    if (this.#home !== undefined) await expected(this.link, `CWD ${this.#home}`, [200, 250])
    if (folder !== undefined) await expected(this.link, `CWD ${folder}`, [200, 250])
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

/** Has the server agree on TLS, and gives the socket back for it. */
async function authTls(control: Control, ms: number): Promise<Socket> {
  const reply = await control.ask('AUTH TLS', ms)
  if (reply.code === 234) return control.detach()
  throw new ProbeError('tls', `${control.address} does not offer AUTH TLS: ${control.display(reply)}`, [
    'where the network is trusted, tls: off goes without; port 990 usually begins with TLS (tls: implicit)',
  ])
}
