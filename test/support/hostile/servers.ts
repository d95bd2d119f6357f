import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Behaviour } from '../faults/faults.ts'

// Servers that send what no sound server sends. Each answers as its protocol requires, up to the place of the text.

const bytesOf = (text: string | Buffer): Buffer => (typeof text === 'string' ? Buffer.from(text) : text)

/** An element of BER with a length of four bytes. */
export const element = (tag: number, ...content: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(content)
  const head = Buffer.from([tag, 0x84, 0, 0, 0, 0])
  head.writeUInt32BE(body.length, 2)
  return Buffer.concat([head, body])
}
const byte = (tag: number, value: number): Buffer => element(tag, Buffer.from([value]))
export const octets = (text: string | Buffer): Buffer => element(4, bytesOf(text))

/** Answers each LDAP request with what `answersTo` makes of its operation, under the request's id unless `id` is set. */
export const ldapServer =
  (answersTo: (operation: number) => readonly Buffer[], id?: number): Behaviour =>
  (socket) =>
    void socket.on('data', (request) => {
      const length = request.readUInt8(1)
      const at = length < 128 ? 2 : 2 + (length & 127)
      const operation = request.readUInt8(at + 3)
      // Asked which controls it offers, before the sign-in, it lists none.
      const isAskedForOffers = request.includes('supportedControl') && !request.includes('namingContexts')
      const own = isAskedForOffers && id === undefined ? [ldapResult(0x65, 0, '')] : answersTo(operation)
      const answers = own.map((one) => element(0x30, byte(2, id ?? request.readUInt8(at + 2)), one))
      socket.write(Buffer.concat(answers))
    })
export const ldapBind = 0x60
export const ldapResult = (tag: number, code: number, text: string): Buffer =>
  element(tag, byte(0x0a, code), octets(''), octets(text))

/** Packets of MySQL, numbered from `first` on. */
export const mysqlPackets = (first: number, ...bodies: readonly Buffer[]): Buffer =>
  Buffer.concat(
    bodies.flatMap((body, at) => [
      Buffer.from([body.length & 255, (body.length >> 8) & 255, body.length >> 16, (first + at) & 255]),
      body,
    ]),
  )

export const mysqlError = (text: string): Buffer => mysqlPackets(0, Buffer.from(`\xff\x10\x04${text}`, 'latin1'))

/** A MySQL server that lets everyone in and answers every query with one value, of the type with this number. */
export const mysqlServer =
  (type: number, value: Buffer): Behaviour =>
  (socket) => {
    const ok = Buffer.from([0, 0, 0, 2, 0, 0, 0])
    const end = Buffer.from([0xfe, 0, 0, 2, 0])
    const plugin = 'mysql_native_password\0'
    const greeting = `\x0a8.0.0\0\x07\0\0\0abcdefgh\0\xff\xff\x21\x02\0\xff\xc7\x15${'\0'.repeat(10)}abcdefghijkl\0${plugin}`
    const names = Buffer.from('\x03def\0\0\0\x01v\x01v\x0c', 'latin1')
    const column = Buffer.concat([names, Buffer.from([33, 0, 255, 255, 255, 0, type, 0, 0, 0, 0, 0])])
    const length = Buffer.from([0xfd, value.length & 255, (value.length >> 8) & 255, value.length >> 16])
    socket.write(mysqlPackets(0, Buffer.from(greeting, 'latin1')))
    socket.on('data', (request) => {
      if (request[3] !== 0) socket.write(mysqlPackets((request[3] ?? 0) + 1, ok))
      else if (request[4] === 3)
        socket.write(mysqlPackets(1, Buffer.from([1]), column, end, Buffer.concat([length, value]), end))
      else socket.end()
    })
  }

/** Answers each MongoDB command with a document in BSON. */
export const mongoServer =
  (document: Buffer): Behaviour =>
  (socket) =>
    void socket.on('data', (request) => {
      const header = Buffer.alloc(21)
      header.writeInt32LE(header.length + document.length, 0)
      header.writeInt32LE(request.readInt32LE(4), 8)
      header.writeInt32LE(2013, 12)
      socket.write(Buffer.concat([header, document]))
    })

/** Documents of BSON within one another, of about `size` bytes. */
export function nestedBson(size: number): Buffer {
  const depth = Math.floor((size - 5) / 8)
  const bytes = Buffer.alloc(5 + 8 * depth)
  for (let level = 0, at = 0; level < depth; level += 1, at += 7) {
    bytes.writeInt32LE(bytes.length - 8 * level, at)
    bytes[at + 4] = 3
    bytes[at + 5] = 'a'.charCodeAt(0)
  }
  bytes.writeInt32LE(5, 7 * depth)
  return bytes
}

/** The whole lines that a peer receives, without their ends. */
function onLines(socket: Socket, take: (line: string) => void): void {
  let rest = ''
  socket.on('data', (chunk) => {
    const lines = (rest + chunk.toString('latin1')).split('\r\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  })
}

/** Answers each Redis command, by its first word. */
export const redisServer =
  (replyTo: (command: string) => string | Buffer): Behaviour =>
  (socket) => {
    let isFirst = false
    onLines(socket, (line) => {
      if (line.startsWith('*')) isFirst = true
      else if (isFirst && !line.startsWith('$')) {
        isFirst = false
        socket.write(replyTo(line.toUpperCase()))
      }
    })
  }
export const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`

/** Sends a banner, and answers each SMTP command, by its first word. */
export const smtpServer =
  (banner: string, replyTo: (command: string) => string): Behaviour =>
  (socket) => {
    socket.write(banner)
    onLines(socket, (line) => void socket.write(replyTo(line.slice(0, 4).toUpperCase())))
  }

/** Answers each HTTP request, by its path, and closes the connection. */
export const httpServer =
  (answerTo: (path: string) => string | Buffer): Behaviour =>
  (socket) => {
    let request = ''
    let isAnswered = false
    socket.on('data', (chunk) => {
      request += chunk.toString('latin1')
      if (isAnswered || !request.includes('\r\n\r\n')) return
      isAnswered = true
      socket.end(answerTo(request.split(' ', 2)[1] ?? ''))
    })
  }

/** An answer of HTTP whose body is announced. */
export const httpAnswer = (
  body: string | Buffer,
  head = 'Content-Type: application/json\r\n',
  status = 200,
): Buffer => {
  const bytes = bytesOf(body)
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} OK\r\n${head}Content-Length: ${bytes.length}\r\n\r\n`, 'latin1'),
    bytes,
  ])
}

/** An answer of HTTP in chunks of one byte. */
export const inChunks = (body: string, head = 'Content-Type: application/json\r\n'): string =>
  `HTTP/1.1 200 OK\r\n${head}Transfer-Encoding: chunked\r\n\r\n${[...body].map((one) => `${Buffer.byteLength(one).toString(16)}\r\n${one}\r\n`).join('')}0\r\n\r\n`

const u16 = (...numbers: readonly number[]): Buffer => Buffer.from(numbers.flatMap((n) => [n >> 8, n & 255]))

export type HostilePeer = { readonly port: number; readonly [Symbol.asyncDispose]: () => Promise<void> }

/** A name server that answers over TCP only, with these records for the name of the question. */
export async function nameServer(
  type: number,
  data: readonly Buffer[],
  over: (answer: Buffer) => readonly Buffer[] = (answer) => [answer],
): Promise<HostilePeer> {
  const answerTo = (question: Buffer, truncated: boolean): Buffer => {
    const ends = question.indexOf(0, 12) + 5
    const records = truncated ? [] : data
    const header = u16(question.readUInt16BE(0), 0x8180 | (truncated ? 0x200 : 0), 1, records.length, 0, 0)
    const body = records.map((one) => Buffer.concat([u16(0xc00c, type, 1, 0, 60, one.length), one]))
    return Buffer.concat([header, question.subarray(12, ends), ...body])
  }
  const sockets = new Set<Socket>()
  const tcp = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
    socket.on('data', (message) => {
      const answer = answerTo(message.subarray(2), false)
      for (const part of over(Buffer.concat([u16(answer.length), answer]))) socket.write(part)
    })
  })
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  const udp = createSocket('udp4')
  udp.on('message', (question, from) => udp.send(answerTo(question, true), from.port, from.address))
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      udp.close()
      tcp.close()
      await once(tcp, 'close')
    },
  }
}

/** The data of TXT records that hold a text. */
export function textRecords(text: string): readonly Buffer[] {
  const bytes = Buffer.from(text)
  const strings: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 255) {
    const part = bytes.subarray(at, at + 255)
    strings.push(Buffer.from([part.length]), part)
  }
  return [Buffer.concat(strings)]
}

/** A server of UDP that answers each datagram. */
export async function datagramServer(answerTo: (request: Buffer) => readonly Buffer[]): Promise<HostilePeer> {
  const udp = createSocket('udp4')
  udp.on('error', () => {})
  udp.on('message', (request, from) => {
    for (const answer of answerTo(request)) udp.send(answer, from.port, from.address)
  })
  udp.bind(0, '127.0.0.1')
  await once(udp, 'listening')
  return {
    port: udp.address().port,
    [Symbol.asyncDispose]: async () => {
      udp.close()
      await once(udp, 'close')
    },
  }
}

/** A packet of SSH without encryption (RFC 4253, 6). */
export function sshPacket(payload: Buffer): Buffer {
  const padding = 8 + ((16 - ((5 + payload.length + 8) % 8)) % 8)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(1 + payload.length + padding, 0)
  head[4] = padding
  return Buffer.concat([head, payload, Buffer.alloc(padding)])
}
export const sshString = (text: string | Buffer): Buffer => {
  const bytes = bytesOf(text)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** A frame of HTTP/2. */
export function http2Frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const start = Buffer.alloc(9)
  start.writeUIntBE(payload.length, 0, 3)
  start[3] = type
  start[4] = flags
  start.writeUInt32BE(stream, 5)
  return Buffer.concat([start, payload])
}

/** `:status: 200` and `content-type: application/grpc`, packed (RFC 7541). */
export const grpcHead = Buffer.concat([Buffer.from([0x88, 0x0f, 0x10, 16]), Buffer.from('application/grpc')])

/** Answers the first gRPC call with frames, and closes the connection. */
export const grpcServer =
  (...frames: readonly Buffer[]): Behaviour =>
  (socket) => {
    let received = Buffer.alloc(0)
    let isAnswered = false
    socket.write(http2Frame(4, 0, 0))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      for (let at = 24; received.length >= at + 9 && !isAnswered; at += 9 + received.readUIntBE(at, 3)) {
        if (received[at + 3] !== 1) continue
        isAnswered = true
        socket.end(Buffer.concat(frames))
      }
    })
  }

/** Sends `head` at once or after the first request, then the same chunk for ever, as fast as it is read. */
export const pours =
  (head: string | Buffer, chunk: string | Buffer, when: 'at once' | 'when asked'): Behaviour =>
  (socket) => {
    const more = (): void => {
      if (socket.destroyed) return
      if (socket.write(chunk)) setImmediate(more)
      else socket.once('drain', more)
    }
    const start = (): void => {
      socket.write(head)
      more()
    }
    if (when === 'at once') start()
    else socket.once('data', start)
  }
