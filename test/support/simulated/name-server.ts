import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** A simulated name server on loopback that answers each question with these NS records, or with a response code. */
export async function nameServer(
  answer: readonly string[] | number,
): Promise<AsyncDisposable & { readonly address: string }> {
  const labels = (text: string): Buffer =>
    Buffer.concat([
      ...text.split('.').map((part) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)])),
      Buffer.of(0),
    ])
  const socket = createSocket('udp4')
  socket.on('message', (question, from) => {
    const records = typeof answer === 'number' ? [] : answer
    const end = question.indexOf(0, 12) + 5
    const data = records.map((record) => {
      const [head, rest] = [Buffer.from('c00c00020001000000640000', 'hex'), labels(record)]
      head.writeUInt16BE(rest.length, 10)
      return Buffer.concat([head, rest])
    })
    const head = Buffer.from(question.subarray(0, 12))
    head.writeUInt16BE(0x8180 | (typeof answer === 'number' ? answer : 0), 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    socket.send(Buffer.concat([head, question.subarray(12, end), ...data]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    [Symbol.asyncDispose]: async () => void socket.close(),
  }
}
