import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

export type Datagrams = { readonly port: number; readonly close: () => void }

/** Answers datagrams on loopback, or not; a connection to the same port is closed in mid answer. */
export async function datagrams(answer: (asked: Buffer) => Buffer | undefined): Promise<Datagrams> {
  const over = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.from([0, 90, 1])))
  }).listen(0, '127.0.0.1')
  await once(over, 'listening')
  const { port } = over.address() as AddressInfo
  const socket = createSocket('udp4').bind(port, '127.0.0.1')
  await once(socket, 'listening')
  socket.on('message', (request, from) => {
    const text = answer(request)
    if (text) socket.send(text, from.port, from.address)
  })
  return {
    port,
    close: () => {
      over.close()
      socket.close()
    },
  }
}

/** RFC 1035: one A record; `cut`: it did not fit, ask over TCP. */
export function nameAnswer(request: Buffer, cut = false): Buffer {
  const question = request.subarray(12, request.indexOf(0, 12) + 5)
  const flags = cut ? [0x83, 0x80] : [0x81, 0x80]
  const counts = [0, 1, 0, cut ? 0 : 1, 0, 0, 0, 0]
  const record = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 5]
  return Buffer.concat([
    request.subarray(0, 2),
    Buffer.from([...flags, ...counts]),
    question,
    Buffer.from(cut ? [] : record),
  ])
}

/** RFC 5905: the time of this very machine. */
export function timeAnswer(request: Buffer): Buffer {
  const messages = Buffer.alloc(48)
  messages[0] = 0b00_100_100
  messages[1] = 1
  request.copy(messages, 24, 40, 48)
  const now = Date.now() / 1_000 + 2_208_988_800
  for (const at of [32, 40]) {
    messages.writeUInt32BE(Math.floor(now), at)
    messages.writeUInt32BE(Math.floor((now % 1) * 2 ** 32), at + 4)
  }
  return messages
}
