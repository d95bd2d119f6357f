import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { type SmtpOptions, smtpAccount, startSmtp } from '../../support/servers/smtp.ts'
import { until } from '../../support/suite/until.ts'

/** A real SMTP server (smtp-server) that keeps its mails. */
async function mailServer(options: SmtpOptions = {}) {
  const mails: string[] = []
  const peer = await startSmtp({
    onData: (stream, _, done) => {
      void text(stream).then((mail) => {
        mails.push(mail)
        done()
      })
    },
    ...options,
  })
  const receiver = (more = ''): string =>
    `{name: ops, email: {server: "smtp://127.0.0.1:${peer.port}", from: svc@svc.test, to: [accepted@svc.test]${more}}}`
  return { peer, mails, receiver }
}

/** An SMTP server on loopback without extensions, that keeps each line: smtp-server decodes the domains of addresses. */
async function plainSmtp() {
  const lines: string[] = []
  const mails: string[] = []
  const server = createServer((socket) => {
    let mail: string[] | undefined
    socket.on('error', () => {})
    socket.write('220 mail.svc.test\r\n')
    createInterface({ input: socket }).on('line', (line) => {
      if (mail === undefined) {
        lines.push(line)
        const isData = line === 'DATA'
        if (isData) mail = []
        socket.write(isData ? '354 go on\r\n' : line === 'QUIT' ? '221 bye\r\n' : '250 ok\r\n')
      } else if (line === '.') {
        mails.push(mail.join('\r\n'))
        mail = undefined
        socket.write('250 queued\r\n')
      } else mail.push(line)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => void (await new Promise((resolve) => server.close(resolve)))
  return { lines, mails, port: (server.address() as AddressInfo).port, stop }
}

const header = (mail: string | undefined, name: string): string | undefined => {
  const unfolded = (mail ?? '').split('\r\n\r\n')[0]?.replaceAll(/\r\n[ \t]+/g, ' ') ?? ''
  return unfolded
    .split('\r\n')
    .find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
    ?.slice(name.length + 1)
    .trim()
}

describe('mail', () => {
  test('M4 has the state in its subject, and what an operator needs in its text', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver())
    const sent = notice({
      victims: { count: 1, names: ['App/http shop'] },
      runbook: 'call Ann',
      url: 'https://svc.example.com/#orders',
      timezone: 'Europe/Berlin',
    })
    expect(await mail.receiver.send([sent], signal())).toEqual({ what: 'accepted' })
    expect(header(mails[0], 'Subject')).toBe(
      '[prod] FAILED: Sql/postgres orders: connect: 10.0.0.7:5432 refused the connection',
    )
    expect(header(mails[0], 'Auto-Submitted')).toBe('auto-generated')
    expect(mails[0]).toContain('FAILED: Sql/postgres orders: connect\r\n  10.0.0.7:5432 refused the connection\r\n')
    expect(mails[0]).toContain('since 2026-11-24 12:42:54 +01:00')
    expect(mails[0]).toContain('affects 1 monitor: App/http shop')
    expect(mails[0]).toContain('runbook: call Ann')
    expect(mails[0]).toContain('https://svc.example.com/#orders')
  })

  test('M4 all mails about one check belong to one thread, and a repeated mail has the same id', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver())
    await mail.receiver.send([notice()], signal())
    await mail.receiver.send([notice()], signal())
    await mail.receiver.send(
      [notice({ id: 'n2', incident: 'i2', what: 'end', endedAt: Date.UTC(2026, 10, 24, 12) })],
      signal(),
    )
    await mail.receiver.send([notice({ id: 'n3' }, { check: 'replication lag' })], signal())
    const [first, again, end, other] = mails.map((one) => [
      header(one, 'Message-ID'),
      header(one, 'References'),
      header(one, 'In-Reply-To'),
    ])
    expect(again).toEqual(first)
    expect(end?.[0]).not.toBe(first?.[0])
    expect(end?.[1]).toBe(first?.[1])
    expect(end?.[2]).toBe(first?.[1])
    expect(other?.[1]).not.toBe(first?.[1])
    expect(header(mails[2], 'Subject')).toBe('[prod] RECOVERED: Sql/postgres orders: connect')
  })

  test('M4 500 faults are one mail that names each of them', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver())
    const many = Array.from({ length: 500 }, (__, at) => notice({ id: `n${at}` }, { monitor: `tcp m${at}` }))
    expect(await mail.receiver.send(many, signal())).toEqual({ what: 'accepted' })
    expect(mails).toHaveLength(1)
    expect(header(mails[0], 'Subject')).toBe(
      '[prod] FAILED: Sql/tcp m0: connect: 10.0.0.7:5432 refused the connection (+499 failed)',
    )
    const body = mails[0]?.replaceAll('=\r\n', '') ?? ''
    expect(many.filter(({ subject }) => !body.includes(`${subject.monitor}: connect`))).toEqual([])
  })

  test('M4 the subject of a mail about several faults names the worst, and counts one warning as one', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver())
    const of = (monitor: string, level: 'failed' | 'warning') => notice({ id: monitor, level }, { monitor })
    await mail.receiver.send([of('tcp a', 'failed'), of('tcp b', 'warning')], signal())
    await mail.receiver.send([of('tcp a', 'warning'), of('tcp b', 'warning')], signal())
    expect(mails.map((one) => header(one, 'Subject'))).toEqual([
      '[prod] FAILED: Sql/tcp a: connect: 10.0.0.7:5432 refused the connection (+1 warning)',
      '[prod] WARNING: Sql/tcp a: connect: 10.0.0.7:5432 refused the connection (+1 warning)',
    ])
  })

  test('M4 a domain that is not ASCII is sent in its ASCII form, to servers without SMTPUTF8 too', async () => {
    const { mails, lines, port, stop } = await plainSmtp()
    await using _ = { [Symbol.asyncDispose]: stop }
    const addresses = 'from: svc@bücher.example, to: [ops@bücher.example]'
    const { receiver } = await opened(`{name: ops, email: {server: "smtp://127.0.0.1:${port}", ${addresses}}}`)
    expect(await receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
    expect(lines.filter((line) => /^(?:MAIL|RCPT)/.test(line))).toEqual([
      'MAIL FROM:<svc@xn--bcher-kva.example>',
      'RCPT TO:<ops@xn--bcher-kva.example>',
    ])
    expect([header(mails[0], 'To'), header(mails[0], 'From')]).toEqual([
      'ops@xn--bcher-kva.example',
      'svc@xn--bcher-kva.example',
    ])
  })

  test('M4 an address that is not ASCII before the @ goes only to a server that offers SMTPUTF8', async () => {
    for (const hidden of [false, true]) {
      const { peer, mails } = await mailServer({ ...{ hideSMTPUTF8: hidden }, onRcptTo: (_, __, done) => done() })
      await using _ = peer
      const server = `smtp://127.0.0.1:${peer.port}`
      const { receiver } = await opened(
        `{name: ops, email: {server: "${server}", from: svc@svc.test, to: [jörg@bücher.example]}}`,
      )
      const delivery = await receiver.send([notice()], signal())
      if (hidden) {
        expect(delivery).toMatchObject({ what: 'refused', fault: 'data' })
        expect((delivery as { readonly message: string }).message).toMatch(
          /does not offer SMTPUTF8, which "jörg@bücher.example" needs: use an address with ASCII before the @/,
        )
        expect(mails).toEqual([])
      } else {
        expect(delivery).toEqual({ what: 'accepted' })
        expect(header(mails[0], 'To')).toBe('jörg@bücher.example')
      }
    }
  })

  test('M4 text of a peer starts no header and no second mail', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver())
    const hostile = 'x\r\n.\r\nMAIL FROM:<a@b.c>\r\nBcc: c@d.e'
    await mail.receiver.send([notice({ text: hostile }, { item: `${hostile}\r\n\r\n` })], signal())
    expect(mails).toHaveLength(1)
    expect(header(mails[0], 'Bcc')).toBeUndefined()
    expect(peer.requests.filter((one) => one.startsWith('MAIL'))).toEqual(['MAIL svc@svc.test'])
  })

  test('M4 the password is sent under TLS of a certificate that the fingerprint names', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const refused = await opened(
      receiver(`, username: monitor, password: {env: P}, fingerprint: "${'00'.repeat(32)}"`),
      { env: { P: smtpAccount.password } },
    )
    const delivery = await refused.receiver.send([notice()], signal())
    expect(delivery).toMatchObject({ what: 'later', fault: 'tls', isPerhapsReceived: false })
    expect(peer.requests).toEqual([])
    const [, actual = ''] = /its fingerprint is ([0-9A-F:]{95})/.exec(JSON.stringify(delivery)) ?? []
    const right = await opened(receiver(`, username: monitor, password: {env: P}, fingerprint: "${actual}"`), {
      env: { P: smtpAccount.password },
    })
    expect(await right.receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
    expect(peer.requests[0]).toBe('AUTH PLAIN monitor')
    expect(mails).toHaveLength(1)
  })

  test('M4 an untrusted certificate gets no mail', async () => {
    const { peer, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver(', servername: mail.svc.test'))
    expect(await mail.receiver.send([notice()], signal())).toMatchObject({
      what: 'later',
      fault: 'tls',
      isPerhapsReceived: false,
    })
    expect(peer.requests).toEqual([])
  })

  test.for([
    ['a wrong password', ', username: monitor, password: {env: P}', {}, { what: 'refused', fault: 'auth' }],
    [
      'a server that cannot verify passwords now',
      ', username: busy, password: {env: P}',
      {},
      { what: 'later', isPerhapsReceived: false },
    ],
  ] as const)('M4 %s', async ([, more, options, expected]) => {
    const { peer, receiver } = await mailServer({
      authInClear: true,
      allowInsecureAuth: true,
      hideSTARTTLS: true,
      ...options,
    })
    await using _ = peer
    const mail = await opened(receiver(more), { env: { P: 'wr0ng-p4ssword' } })
    const delivery = await mail.receiver.send([notice()], signal())
    expect(delivery).toMatchObject(expected)
    // The server repeats the password.
    expect(JSON.stringify(delivery)).not.toContain('wr0ng-p4ssword')
  })

  test('M4 refused recipients: some are a warning, all a refusal, and greylisting is later', async () => {
    const { peer, mails } = await mailServer()
    await using _ = peer
    const to = (...names: readonly string[]): string =>
      `{name: ops, email: {server: "smtp://127.0.0.1:${peer.port}", from: svc@svc.test, to: [${names.map((name) => `${name}@svc.test`).join(', ')}]}}`
    const some = await opened(to('accepted', 'gone'))
    expect(await some.receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
    expect(some.warnings).toEqual([expect.stringMatching(/refuses 1 of 2 recipients: .*No such user/)])
    const none = await opened(to('gone'))
    expect(await none.receiver.send([notice()], signal())).toMatchObject({ what: 'refused', fault: 'data' })
    const later = await opened(to('later'))
    expect(await later.receiver.send([notice()], signal())).toMatchObject({ what: 'later' })
    expect(mails).toHaveLength(1)
  })

  test('M4 a mail whose receipt is missing has perhaps arrived', async () => {
    let isRead = false
    const { peer, receiver } = await mailServer({
      onData: (stream) => {
        stream.resume()
        stream.once('end', () => {
          isRead = true
        })
      },
    })
    await using _ = peer
    const mail = await opened(receiver())
    const stop = new AbortController()
    const sending = mail.receiver.send([notice()], stop.signal)
    await until(() => isRead)
    stop.abort()
    expect(await sending).toMatchObject({ what: 'later', isPerhapsReceived: true })
  })
})
