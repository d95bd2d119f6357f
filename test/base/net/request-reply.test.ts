import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { RequestReplyConnection } from '../../../src/core/base/net/request-reply.ts'
import { Control, ReplyReader as FtpReader } from '../../../src/core/checks/kinds/ftp/control.ts'
import { SmtpReplyReader, SmtpSession } from '../../../src/core/checks/kinds/smtp/connection.ts'
import { until } from '../../support/suite/until.ts'

const servers: Server[] = []
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

/** Both ends of a connection, and the bytes that the far one has received. */
async function pair(): Promise<{ readonly near: Socket; readonly far: Socket; readonly input: () => string }> {
  const server = createServer().listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const near = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [far] = (await once(server, 'connection')) as [Socket]
  sockets.push(near, far)
  let text = ''
  far.on('data', (chunk) => {
    text += String(chunk)
  })
  return { near, far, input: () => text }
}
/** Has the far end say something, and waits until it has arrived. */
async function says({ near, far }: { readonly near: Socket; readonly far: Socket }, words: string): Promise<void> {
  const before = near.bytesRead
  far.write(words)
  await until(() => near.bytesRead - before >= words.length)
}
const hide = String
const lines = (chunk: Uint8Array): readonly string[] => String(chunk).trim().split('\n')

describe('one request, one reply', () => {
  test('FTP: a second reply to a transfer does not answer the next command', async () => {
    const ends = await pair()
    const control = new Control(ends.near, 'h:21', hide)
    await says(ends, '220 hello\r\n')
    expect((await control.first(10_000)).code).toBe(220)
    await says(ends, '426 the transfer was cut\r\n')
    const reply = control.ask('PWD', 10_000)
    await until(() => ends.input() === 'PWD\r\n')
    ends.far.write('257 "/"\r\n')
    expect((await reply).code).toBe(257)
  })

  test('FTP: after a 421 no command is sent, and each one reports it', async () => {
    const ends = await pair()
    const control = new Control(ends.near, 'h:21', hide)
    await says(ends, '421 shutting down\r\n')
    const cause = { fault: 'refused', message: 'h:21 ended the session: "421 shutting down"' }
    await expect(control.ask('USER x', 10_000)).rejects.toMatchObject(cause)
    expect(control.usable).toBe(false)
    await expect(control.ask('PASS y', 10_000)).rejects.toMatchObject(cause)
    expect(ends.input()).toBe('')
  })

  test('it waits no longer than configured, and reports for what', async () => {
    const { near } = await pair()
    const silent = new RequestReplyConnection(near, 'h:1', { push: lines })
    await expect(silent.next(30)).rejects.toMatchObject({
      fault: 'timeout',
      message: 'h:1 accepted the connection but sent nothing for 30 ms',
    })
    expect(silent.usable).toBe(false)
    const other = new RequestReplyConnection((await pair()).near, 'h:1', { push: lines })
    await expect(other.ask('x', 'PING', 30)).rejects.toMatchObject({
      fault: 'timeout',
      message: 'h:1 did not answer PING within 30 ms',
    })
  })

  test.each([
    ['before sending anything', '', undefined],
    ['after its first message', 'hello\n', undefined],
    ['instead of answering PING', 'hello\n', 'PING'],
  ])('a peer that hangs up is reported as %s', async (when, first, name) => {
    const ends = await pair()
    const exchange = new RequestReplyConnection(ends.near, 'h:1', { push: lines })
    if (first !== '') {
      await says(ends, first)
      expect(await exchange.next()).toBe('hello')
    }
    const reply = name === undefined ? exchange.next() : exchange.ask('x', name)
    ends.far.end()
    await expect(reply).rejects.toMatchObject({ fault: 'protocol', message: `h:1 closed the connection ${when}` })
  })

  test.each([
    ['while it is idle', undefined, 'after it had answered PASV with "500 no port"'],
    ['during the next request', 'LIST', 'instead of answering LIST; before that, it answered PASV with "500 no port"'],
  ])('a peer that hangs up %s after a refusal is reported with its refusal', async (_, next, when) => {
    const ends = await pair()
    const lastWords = (reply: string) => (reply.startsWith('5') ? `"${reply}"` : undefined)
    const exchange = new RequestReplyConnection(ends.near, 'h:1', { push: lines }, { lastWords })
    const refusal = exchange.ask('PASV', 'PASV')
    ends.far.write('500 no port\n')
    expect(await refusal).toBe('500 no port')
    const reply = next === undefined ? undefined : exchange.ask(next, next)
    reply?.catch(() => {})
    ends.far.end()
    await until(() => !exchange.usable)
    const cause = { fault: 'protocol', message: `h:1 closed the connection ${when}` }
    await expect(reply ?? exchange.ask('QUIT', 'QUIT')).rejects.toMatchObject(cause)
  })

  test('unsolicited data beyond the limit is a flood', async () => {
    const ends = await pair()
    const exchange = new RequestReplyConnection(ends.near, 'h:1', { push: lines })
    ends.far.write('a\n'.repeat(16))
    await until(() => exchange.unasked.length === 16)
    expect(exchange.usable).toBe(true)
    ends.far.write('b\n')
    await until(() => !exchange.usable)
    expect(ends.near.destroyed).toBe(true)
    // What came before is not lost.
    expect(await exchange.next()).toBe('a')
  })

  test.each(['220 more\r\n', '220-half', '220-half\r\n'])(
    '%j in clear text does not count as sent under TLS',
    async (words) => {
      for (const Exchange of [Control, SmtpSession]) {
        const ends = await pair()
        const client = new Exchange(ends.near, 'h:1', hide)
        const agreed =
          client instanceof SmtpSession ? client.startTls() : client.ask('AUTH TLS', 10_000).then(() => client.detach())
        await until(() => ends.input() !== '')
        ends.far.write(`220 go on\r\n${words}`)
        await expect(agreed).rejects.toThrow('h:1 continued in clear text after it had agreed to TLS')
      }
    },
  )
})

describe('replies that begin with a code', () => {
  const smtp = (...pieces: readonly string[]) => {
    const reader = new SmtpReplyReader('h:25', hide)
    return pieces.flatMap((piece) => reader.push(Buffer.from(piece)))
  }
  const ftp = (...pieces: readonly string[]) => {
    const reader = new FtpReader('h:21', hide)
    return pieces.flatMap((piece) => reader.push(Buffer.from(piece)))
  }

  test('SMTP: replies arrive in pieces, each line with its code', () => {
    expect(smtp('250-m', 'ail\r\n250-SIZE', ' 5\r', '\n250', '\r\n354 go\n')).toEqual([
      { code: 250, lines: ['mail', 'SIZE 5', ''] },
      { code: 354, lines: ['go'] },
    ])
    for (const other of ['\r\n', '150 x\r\n', '250-a\r\nb\r\n', '250-a\r\n251 b\r\n', '2500\r\n']) {
      expect(() => smtp(other)).toThrow('h:25 does not speak SMTP: it sent ')
    }
  })

  test('FTP: empty lines may separate replies, and any line may be within one', () => {
    expect(ftp('\r\n150-a\r\n\r\n151 b\r\n150-c\r\n150\r\n')).toEqual([
      { code: 150, text: '150-a\n\n151 b\n150-c\n150' },
    ])
    for (const other of ['650 x\r\n', 'SSH-2.0-x\r\n', '2200\r\n']) {
      expect(() => ftp(other)).toThrow('h:21 does not speak FTP: it sent ')
    }
  })

  test('16 KiB is a reply, more is not, however it is divided', () => {
    const maxReply = 16 * 1024
    expect(ftp(`220 ${'x'.repeat(maxReply - 4)}\r\n`)).toHaveLength(1)
    for (const read of [smtp, ftp]) {
      for (const flood of [
        `220 ${'x'.repeat(maxReply - 3)}\r\n`,
        'x'.repeat(maxReply + 1),
        '220-x\r\n'.repeat(maxReply / 5),
      ]) {
        expect(() => read(flood)).toThrow('sent a reply without an end')
      }
    }
    expect(() => ftp('220-x\r\n', '\n'.repeat(maxReply))).toThrow('sent a reply without an end')
  })
})
