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
    expect(header(mails[0], 'Subject')).toBe('[prod] FAILED: Sql/postgres orders: connect')
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
    expect(header(mails[0], 'Subject')).toBe('[prod] 500 failed: Sql/tcp m0, Sql/tcp m1, Sql/tcp m2 and 497 more')
    const body = mails[0]?.replaceAll('=\r\n', '') ?? ''
    expect(many.filter(({ subject }) => !body.includes(`${subject.monitor}: connect`))).toEqual([])
  })

  test('M4 the subject of a mail about several faults counts one warning as one', async () => {
    const { peer, mails, receiver } = await mailServer()
    await using _ = peer
    const mail = await opened(receiver())
    const of = (monitor: string, level: 'failed' | 'warning') => notice({ id: monitor, level }, { monitor })
    await mail.receiver.send([of('tcp a', 'failed'), of('tcp b', 'warning')], signal())
    await mail.receiver.send([of('tcp a', 'warning'), of('tcp b', 'warning')], signal())
    expect(mails.map((one) => header(one, 'Subject'))).toEqual([
      '[prod] 1 failed, 1 warning: Sql/tcp a, Sql/tcp b',
      '[prod] 2 warnings: Sql/tcp a, Sql/tcp b',
    ])
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
