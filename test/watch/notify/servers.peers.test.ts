import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { type Exim, eximMissing, fullSpool, startExim } from '../../support/servers/exim.ts'
import { type IrcRelay, ircRelayMissing, startIrcRelay } from '../../support/servers/irc.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

peerSuite(eximMissing ?? opensslMissing(), 'a real mail server (Exim)', () => {
  let certificates: Certificates
  let exim: Exim
  beforeAll(async () => {
    certificates = makeCertificates()
    exim = await startExim([], certificates.good)
  })
  afterAll(async () => {
    await exim?.remove()
    certificates?.remove()
  })
  const receiver = (more: string, port = exim.port): string =>
    `{name: ops, email: {server: "smtp://127.0.0.1:${port}", from: svc@svc.test, to: [ops@svc.test]${more}}}`
  /** The headers and bodies of the mails in its queue. */
  const queued = (): readonly string[] => {
    const input = join(exim.spool, 'input')
    const names = readdirSync(input, { recursive: true, encoding: 'utf8' })
    return names.filter((name) => /-[HD]$/.test(name)).map((name) => readFileSync(join(input, name), 'utf8'))
  }

  test('M4 takes mail over STARTTLS that is trusted, with its thread and its text', async () => {
    const { receiver: mail } = await opened(receiver(`, ca: "${certificates.caFile}"`))
    expect(await mail.send([notice()], signal())).toEqual({ what: 'accepted' })
    const stored = queued().join('\n')
    expect(stored).toContain('Subject: [prod] FAILED: Sql/postgres orders: connect')
    expect(stored).toMatch(/References: <svc\.thread\.[0-9a-f]{32}@svc\.test>/)
    expect(stored).toContain('10.0.0.7:5432 refused the connection')
    // Exim notes the cipher of the connection over which a mail came.
    expect(stored).toMatch(/-tls_cipher TLS/)
  })

  test('M4 gets nothing while its certificate is not trusted, or is that of another name', async () => {
    const before = queued().length
    const elsewhere = await opened(receiver(`, ca: "${certificates.caFile}", servername: elsewhere.test`))
    expect(await elsewhere.receiver.send([notice()], signal())).toMatchObject({ what: 'later', fault: 'tls' })
    const unknown = await opened(receiver(', servername: svc.test'))
    expect(await unknown.receiver.send([notice()], signal())).toMatchObject({ what: 'later', fault: 'tls' })
    expect(queued()).toHaveLength(before)
  })

  test('M4 500 faults at once are one mail in its queue', async () => {
    const before = queued().length
    const { receiver: mail } = await opened(receiver(''))
    const many = Array.from({ length: 500 }, (_, at) => notice({ id: `n${at}` }, { monitor: `tcp m${at}` }))
    expect(await mail.send(many, signal())).toEqual({ what: 'accepted' })
    // A file of headers and one of the body.
    expect(queued()).toHaveLength(before + 2)
  })

  test('M4 a recipient that does not exist is a refusal, a full spool means later', async () => {
    const gone = await opened(receiver('').replace('ops@svc.test]', 'nobody@svc.test]'))
    expect(await gone.receiver.send([notice()], signal())).toMatchObject({
      what: 'refused',
      fault: 'data',
      message: expect.stringContaining('User unknown'),
    })
    const full = await startExim(fullSpool)
    onTestFinished(() => full.remove())

    const { receiver: mail } = await opened(receiver('', full.port))
    expect(await mail.send([notice()], signal())).toMatchObject({ what: 'later', isPerhapsReceived: false })
  })

  test('M4 a mail server that hangs has perhaps got nothing, and the wait ends with the signal', async () => {
    exim.freeze()
    onTestFinished(() => exim.thaw())

    const { receiver: mail } = await opened(receiver(''))
    const delivery = await mail.send([notice()], AbortSignal.timeout(1_000))
    expect(delivery).toMatchObject({ what: 'later', fault: 'timeout', isPerhapsReceived: false })
  })
})

peerSuite(ircRelayMissing, 'a program for webhooks of Alertmanager (alertmanager-irc-relay)', () => {
  let irc: IrcRelay
  beforeAll(async () => {
    irc = await startIrcRelay()
  })
  afterAll(() => irc?.remove())

  test('M3 writes each alert of a message, and its end, to the channel', async () => {
    const { receiver } = await opened(`{name: chat, webhook: {url: "${irc.url}"}}`)
    const two = [
      notice({ text: 'first text' }),
      notice({ id: 'n2', level: 'warning', text: 'second text' }, { monitor: 'tcp cache' }),
    ]
    expect(await receiver.send(two, signal())).toEqual({ what: 'accepted' })
    await until(() => irc.lines().length >= 2, 60_000)
    expect(irc.lines()).toContain('firing SvcFailed postgres orders: first text')
    expect(irc.lines()).toContain('firing SvcWarning tcp cache: second text')
    await receiver.send([notice({ id: 'n3', what: 'end', endedAt: Date.now(), text: 'healthy again' })], signal())
    await until(() => irc.lines().includes('resolved SvcFailed postgres orders: healthy again'), 60_000)
  })
})
