import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { Binary, type Document, deserialize, serialize } from 'bson'
import { type Peer, type PeerOptions, peer } from '../faults/faults.ts'

/**
 * A small server side of MongoDB's wire protocol: OP_MSG, the OP_QUERY with which drivers begin, and
 * SCRAM-SHA-256. Documents are those of the official `bson`.
 */
export type MongoAnswer = Document | 'hang' | Buffer
export type MongoPeerOptions = Pick<PeerOptions, 'tls'> & {
  /** Users with their passwords; without any there is no sign-in. */
  readonly users?: Readonly<Record<string, string>>
  /** Added to the answer of `hello`. */
  readonly hello?: Document
  /** Undefined: answered with ok. Not called for commands of the sign-in. */
  readonly answer?: (command: Document) => MongoAnswer | undefined
  /** Takes the place of the first answer of all, also to the driver's own connections. */
  readonly first?: Buffer
  /** Rounds of PBKDF2 that a sign-in requires. */
  readonly rounds?: number | string
  readonly delayMs?: number
}
export type MongoPeer = Peer & {
  /** All commands but those of the sign-in and the driver's own, in order. */
  readonly commands: () => readonly Document[]
  /** Sign-ins that began, and those that succeeded. */
  readonly signIns: () => { readonly attempts: number; readonly right: number }
}

/** The answer of a sound node about itself. */
export const hello = {
  helloOk: true,
  isWritablePrimary: true,
  ismaster: true,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  logicalSessionTimeoutMinutes: 30,
  minWireVersion: 0,
  maxWireVersion: 21,
  readOnly: false,
}

export async function mongoPeer(options: MongoPeerOptions = {}): Promise<MongoPeer> {
  const commands: Document[] = []
  let attempts = 0
  let right = 0
  let first = options.first

  const behave = (socket: Socket): void => {
    let signedIn = options.users === undefined
    let scram: Scram | undefined
    const waits: ReturnType<typeof setTimeout>[] = []
    socket.once('close', () => waits.forEach(clearTimeout))

    const saslStart = (command: Document): Document => {
      attempts += 1
      scram = scramFor(options.users ?? {}, payloadOf(command), options.rounds ?? 15_000)
      return { conversationId: 1, done: false, payload: binary(scram.first), ok: 1 }
    }
    const begin = (command: Document): Document => {
      const wish = command.speculativeAuthenticate as Document | undefined
      const mechanisms = 'saslSupportedMechs' in command ? { saslSupportedMechs: ['SCRAM-SHA-256'] } : {}
      const early = wish && options.users ? { speculativeAuthenticate: saslStart(wish) } : {}
      return { ...hello, localTime: new Date(), ...options.hello, ...mechanisms, ...early, ok: 1 }
    }
    const answerTo = (command: Document): MongoAnswer => {
      const [name = ''] = Object.keys(command)
      if (/^(hello|ismaster)$/i.test(name)) {
        if (!('client' in command) && !('topologyVersion' in command)) commands.push(command)
        return options.answer?.(command) ?? begin(command)
      }
      if (name === 'saslStart') return saslStart(command)
      if (name === 'saslContinue') {
        const proof = scram?.last(payloadOf(command))
        if (proof === undefined)
          return { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg: 'Authentication failed.' }
        right += 1
        signedIn = true
        return { conversationId: 1, done: true, payload: binary(proof), ok: 1 }
      }
      if (name === 'endSessions') return { ok: 1 }
      commands.push(command)
      if (!signedIn && name !== 'ping') {
        return { ok: 0, code: 13, codeName: 'Unauthorized', errmsg: `Command ${name} requires authentication` }
      }
      return options.answer?.(command) ?? { ok: 1 }
    }
    const act = (bytes: Buffer): void => {
      const answer = first ?? answerTo(commandOf(bytes))
      if (first) first = undefined
      if (answer === 'hang') return
      socket.write(Buffer.isBuffer(answer) ? answer : reply(bytes, answer))
    }
    const read = messageReader((bytes) => {
      if (options.delayMs === undefined) act(bytes)
      else waits.push(setTimeout(() => act(bytes), options.delayMs))
    })
    socket.on('data', read)
  }
  const opened = await peer(behave, options.tls ? { tls: options.tls } : {})
  return { ...opened, commands: () => commands, signIns: () => ({ attempts: attempts, right }) }
}

const opReply = 1
const opQuery = 2_004
const opMsg = 2_013

function messageReader(handle: (bytes: Buffer) => void): (bytes: Buffer) => void {
  let buffer = Buffer.alloc(0)
  return (bytes) => {
    buffer = Buffer.concat([buffer, bytes])
    while (buffer.length >= 16 && buffer.length >= buffer.readInt32LE(0)) {
      const message = buffer.subarray(0, Math.max(16, buffer.readInt32LE(0)))
      buffer = buffer.subarray(message.length)
      handle(message)
    }
  }
}

function commandOf(message: Buffer): Document {
  // OP_MSG: flags and the kind of its section; OP_QUERY: flags, a name, two counts.
  const at = message.readInt32LE(12) === opQuery ? message.indexOf(0, 20) + 1 + 8 : 16 + 4 + 1
  return deserialize(message.subarray(at, at + message.readInt32LE(at)))
}

/** An answer in the form of its question. */
export function reply(request: Buffer, document: Document): Buffer {
  const query = request.readInt32LE(12) === opQuery
  const before = query ? Buffer.alloc(20) : Buffer.alloc(5)
  if (query) before.writeInt32LE(1, 16)
  return message(request, query ? opReply : opMsg, Buffer.concat([before, serialize(document)]))
}

/** A complete message around a body; `request` has the id that it answers. */
export function message(request: Buffer | undefined, kind: number, body: Buffer): Buffer {
  const header = Buffer.alloc(16)
  header.writeInt32LE(16 + body.length, 0)
  header.writeInt32LE(1, 4)
  header.writeInt32LE(request?.readInt32LE(4) ?? 0, 8)
  header.writeInt32LE(kind, 12)
  return Buffer.concat([header, body])
}
/** A document as OP_MSG. */
export const opMessage = (document: Buffer): Buffer =>
  message(undefined, opMsg, Buffer.concat([Buffer.alloc(5), document]))

/** A document within a document, `levels` deep, as bytes: no library would write it. */
export function deepBson(levels: number): Buffer {
  const parts: Buffer[] = []
  for (let level = 0; level < levels; level += 1) {
    const open = Buffer.from([0, 0, 0, 0, 0x03, 0x61, 0])
    open.writeInt32LE((levels - level) * 8 + 5, 0)
    parts.push(open)
  }
  return Buffer.concat([...parts, Buffer.from([5, 0, 0, 0, 0]), Buffer.alloc(levels)])
}

const binary = (text: string): Binary => new Binary(Buffer.from(text))
const payloadOf = (command: Document): string => Buffer.from((command.payload as Binary).buffer).toString()

type Scram = { readonly first: string; readonly last: (said: string) => string | undefined }

/** RFC 5802 and 7677. An unknown user is refused at the end only. */
function scramFor(users: Readonly<Record<string, string>>, message: string, rounds: number | string): Scram {
  const bare = message.replace(/^n,,/, '')
  const [, user = '', nonce = ''] = /^n=([^,]*),r=(.*)$/.exec(bare) ?? []
  const password = users[user] ?? randomBytes(8).toString('hex')
  const salt = randomBytes(16)
  const first = `r=${nonce}${randomBytes(12).toString('base64')},s=${salt.toString('base64')},i=${rounds}`
  const last = (message: string): string | undefined => {
    const [, without = '', proof = ''] = /^(.*),p=(.*)$/.exec(message) ?? []
    const salted = pbkdf2Sync(password, salt, Number(rounds), 32, 'sha256')
    const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
    const clientKey = hmac(salted, 'Client Key')
    const stored = createHash('sha256').update(clientKey).digest()
    const all = `${bare},${first},${without}`
    const signature = hmac(stored, all)
    const expected = Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] ?? 0))).toString('base64')
    if (proof !== expected) return undefined
    return `v=${hmac(hmac(salted, 'Server Key'), all).toString('base64')}`
  }
  return { first, last }
}
