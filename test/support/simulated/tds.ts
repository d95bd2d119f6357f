import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { type Peer, peer } from '../faults/faults.ts'
import type { ServerCertificate } from '../servers/certs.ts'

/** A small server side of TDS 7.4 (MS-TDS): enough for a driver to sign in, ask, be refused and call off. */
export type TdsError = { readonly number: number; readonly state?: number; readonly message: string }
export type TdsLogin = {
  readonly user: string
  readonly password: string
  readonly database: string
  readonly app: string
}
type Cell = string | number | null
/** Rows; an error; `hang`, until an attention ends it; or bytes that take the place of an answer. */
export type TdsAnswer =
  | { readonly rows: readonly Readonly<Record<string, Cell>>[] }
  | { readonly error: TdsError }
  | 'hang'
  | Buffer
export type TdsOptions = {
  /** Undefined accepts the sign-in. */
  readonly login?: (login: TdsLogin) => readonly TdsError[] | undefined
  readonly answer: (sql: string) => TdsAnswer
  /** Shown when the client wishes for TLS; without one the server offers none. */
  readonly tls?: ServerCertificate
  readonly tlsRequired?: boolean
  /** Called after each handshake. */
  readonly secured?: (socket: TLSSocket) => void
  /** Sent with the acknowledgement of a sign-in: where clients are to go instead. */
  readonly route?: { readonly host: string; readonly port: number }
  /** Milliseconds before each answer. */
  readonly delayMs?: number
}
export type TdsPeer = Peer & {
  readonly logins: () => readonly TdsLogin[]
  readonly batches: () => readonly string[]
  readonly attentions: () => number
  /** Batches that have begun and have neither ended nor been cancelled. */
  readonly running: () => number
}

const type = { batch: 1, reply: 4, attention: 6, login: 16, prelogin: 18 } as const
const doneError = 0x02
const doneCount = 0x10
const doneAttention = 0x20

export async function tdsPeer(options: TdsOptions): Promise<TdsPeer> {
  const logins: TdsLogin[] = []
  const batches: string[] = []
  let attentions = 0
  let running = 0

  const behave = (socket: Socket): void => {
    let hanging = false
    let secure: TLSSocket | undefined
    let encrypted: Duplex | undefined
    /** The client's last bytes were TLS within a packet, so ours are to be as well. */
    let wrapped = false
    const out = (bytes: Buffer): void => void (secure ?? socket).write(bytes)
    const reply = (...tokens: readonly Buffer[]): void => out(packets(type.reply, Buffer.concat(tokens)))

    const startTls = (certificate: ServerCertificate): void => {
      const [ours, theirs] = duplexPair()
      encrypted = theirs
      theirs.on('data', (bytes: Buffer) => void socket.write(wrapped ? packets(type.prelogin, bytes) : bytes))
      const started = new TLSSocket(ours as unknown as Socket, { isServer: true, ...certificate })
      started.on('error', () => void socket.destroy())
      started.on('close', () => void socket.destroy())
      const read = packetReader(handle)
      started.on('data', (bytes: Buffer) => read(bytes))
      started.once('secure', () => {
        secure = started
        options.secured?.(started)
      })
      socket.once('close', () => void started.destroy())
    }

    const handle = (kind: number, body: Buffer): void => {
      if (kind === type.prelogin && encrypted) {
        wrapped = true
        encrypted.write(body)
      } else if (kind === type.prelogin) {
        const wishes = encryptionOf(body) === 1 || encryptionOf(body) === 3
        const mode = options.tls && (wishes || options.tlsRequired) ? 3 : 2
        reply(prelogin(mode))
        if (options.tls && wishes) startTls(options.tls)
      } else if (kind === type.login) {
        const login = loginOf(body)
        logins.push(login)
        const refused = options.login?.(login)
        if (refused) {
          reply(...refused.map(errorToken), done(doneError))
          socket.end()
        } else reply(loginAck, ...(options.route ? [routing(options.route)] : []), done())
      } else if (kind === type.batch) {
        const sql = body.subarray(body.readUInt32LE(0)).toString('utf16le')
        batches.push(sql)
        // What drivers send to set up a session.
        const answer = /^\s*(set (?!nocount)|use )/i.test(sql) ? { rows: [] } : options.answer(sql)
        if (answer === 'hang') {
          hanging = true
          running += 1
        } else if (Buffer.isBuffer(answer)) out(answer)
        else if ('error' in answer) reply(errorToken(answer.error), done(doneError))
        else reply(...rowTokens(answer.rows), done(doneCount, answer.rows.length))
      } else if (kind === type.attention) {
        attentions += 1
        if (hanging) reply(done(doneError))
        if (hanging) running -= 1
        hanging = false
        reply(done(doneAttention))
      }
    }
    const waits: ReturnType<typeof setTimeout>[] = []
    const later = (kind: number, body: Buffer): void => {
      if (options.delayMs === undefined) handle(kind, body)
      else waits.push(setTimeout(() => handle(kind, body), options.delayMs))
    }
    const read = packetReader(later)
    socket.on('data', (bytes: Buffer) => {
      // After the handshake records come bare.
      if (encrypted && bytes[0] !== type.prelogin) {
        wrapped = false
        encrypted.write(bytes)
      } else read(bytes)
    })
    socket.once('close', () => {
      for (const wait of waits) clearTimeout(wait)
      // The server sees that its client has gone, and ends what it runs.
      if (hanging) running -= 1
    })
  }
  const opened = await peer(behave)
  return {
    ...opened,
    logins: () => logins,
    batches: () => batches,
    attentions: () => attentions,
    running: () => running,
  }
}

/** Puts packets together to messages. */
function packetReader(handle: (kind: number, body: Buffer) => void): (bytes: Buffer) => void {
  let buffer = Buffer.alloc(0)
  let body = Buffer.alloc(0)
  return (bytes) => {
    buffer = Buffer.concat([buffer, bytes])
    while (buffer.length >= 8 && buffer.length >= buffer.readUInt16BE(2)) {
      const length = Math.max(8, buffer.readUInt16BE(2))
      const [kind = 0, status = 0] = buffer
      body = Buffer.concat([body, buffer.subarray(8, length)])
      buffer = buffer.subarray(length)
      if ((status & 1) === 0) continue
      const whole = body
      body = Buffer.alloc(0)
      handle(kind, whole)
    }
  }
}

/** A message as packets of at most 4 KiB. */
export function packets(kind: number, body: Buffer): Buffer {
  const all: Buffer[] = []
  for (let at = 0, id = 1; at === 0 || at < body.length; at += 4_088, id += 1) {
    const part = body.subarray(at, at + 4_088)
    const isLast = at + 4_088 >= body.length
    all.push(
      Buffer.from([kind, isLast ? 1 : 0, (part.length + 8) >> 8, (part.length + 8) & 0xff, 0, 0, id & 0xff, 0]),
      part,
    )
  }
  return Buffer.concat(all)
}

function prelogin(encryption: number): Buffer {
  // VERSION 16.0.1000, ENCRYPTION; each with its place and length.
  return Buffer.from([0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0x03, 0xe8, 0, 0, encryption])
}
function encryptionOf(body: Buffer): number | undefined {
  for (let at = 0; body[at] !== 0xff && at + 5 <= body.length; at += 5) {
    if (body[at] === 1) return body[body.readUInt16BE(at + 1)]
  }
  return undefined
}

function loginOf(body: Buffer): TdsLogin {
  const field = (at: number): Buffer => {
    const start = body.readUInt16LE(at)
    return body.subarray(start, start + body.readUInt16LE(at + 2) * 2)
  }
  // Each byte was turned around by half and mixed with A5.
  const password = field(44).map((byte) => {
    const mixed = byte ^ 0xa5
    return ((mixed << 4) | (mixed >> 4)) & 0xff
  })
  return {
    user: field(40).toString('utf16le'),
    password: Buffer.from(password).toString('utf16le'),
    app: field(48).toString('utf16le'),
    database: field(68).toString('utf16le'),
  }
}

const wide = (text: string): Buffer => Buffer.from(text, 'utf16le')
const u16 = (value: number): Buffer => Buffer.from([value & 0xff, (value >> 8) & 0xff])
const i32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32LE(value)
  return buffer
}
const sized = (kind: number, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([kind]), u16(body.length), body])
}
const short = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), wide(text)])
const long = (text: string): Buffer => Buffer.concat([u16(text.length), wide(text)])

const loginAck = sized(
  0xad,
  Buffer.from([1, 0x74, 0, 0, 4]),
  short('Microsoft SQL Server'),
  Buffer.from([16, 0, 0x03, 0xe8]),
)
/** ENVCHANGE 20. */
const routing = ({ host, port }: { readonly host: string; readonly port: number }): Buffer => {
  const place = Buffer.concat([Buffer.from([0]), u16(port), long(host)])
  return sized(0xe3, Buffer.from([20]), u16(place.length), place, u16(0))
}
export const errorToken = ({ number, state = 1, message }: TdsError): Buffer =>
  sized(0xaa, i32(number), Buffer.from([state, 14]), long(message), short('SIMULATED'), short(''), i32(1))
export const done = (status = 0, rows = 0): Buffer =>
  Buffer.concat([Buffer.from([0xfd]), u16(status), u16(0xc1), i32(rows), i32(0)])

function rowTokens(rows: readonly Readonly<Record<string, Cell>>[]): readonly Buffer[] {
  const names = Object.keys(rows[0] ?? {})
  if (names.length === 0) return []
  const isNumber = names.map((name) => rows.some((row) => typeof row[name] === 'number'))
  const columns = names.map((name, at) =>
    Buffer.concat([
      i32(0),
      u16(0x09),
      // INTN of 8 bytes, or NVARCHAR(4000) in the collation of a new server.
      isNumber[at] ? Buffer.from([0x26, 8]) : Buffer.concat([Buffer.from([0xe7]), u16(8_000), collation]),
      short(name),
    ]),
  )
  const cell = (value: Cell | undefined, number: boolean): Buffer => {
    if (value === null || value === undefined) return number ? Buffer.from([0]) : u16(0xffff)
    if (!number) return Buffer.concat([u16(String(value).length * 2), wide(String(value))])
    const bytes = Buffer.alloc(9)
    bytes[0] = 8
    bytes.writeBigInt64LE(BigInt(value), 1)
    return bytes
  }
  return [
    Buffer.concat([Buffer.from([0x81]), u16(names.length), ...columns]),
    ...rows.map((row) =>
      Buffer.concat([Buffer.from([0xd1]), ...names.map((name, at) => cell(row[name], isNumber[at] ?? false))]),
    ),
  ]
}
const collation = Buffer.from([0x09, 0x04, 0xd0, 0x00, 0x34])
