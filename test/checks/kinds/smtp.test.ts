import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectTcp } from '../../../src/core/base/net/connect.ts'
import { connectTls } from '../../../src/core/base/net/tls-connect.ts'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import { authentication } from '../../../src/core/checks/kinds/smtp/checks.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import {
  checked,
  evaluated,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import { type Behaviour, cutAfter, echo, endless, escapeSequences, peer, speaks } from '../../support/faults/faults.ts'
import { proxy } from '../../support/faults/proxy.ts'
import {
  type Certificates,
  makeCertificates,
  opensslMissing,
  type ServerCertificate,
} from '../../support/servers/certs.ts'
import { smtpAccount, startSmtp } from '../../support/servers/smtp.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { hungUp } from '../../support/suite/until.ts'

type Overrides = Partial<Values<typeof smtp.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const host = '127.0.0.1'
const account: Overrides = { username: smtpAccount.username, password: secret(smtpAccount.password) }
const at = (port: number, overrides: Overrides = {}, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
  runKind(smtp, { host, port, ...overrides }, mode, options)
const statusesOf = (results: readonly Result[]): string[] => results.map(({ check, status }) => `${check} ${status}`)

suiteWith(opensslMissing(), 'smtp', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())
  const trusting = (overrides: Overrides = {}): Overrides => ({
    servername: 'svc.test',
    caFile: made.caFile,
    ...overrides,
  })
  const offering = (certificate: ServerCertificate = made.good, more: Parameters<typeof startSmtp>[0] = {}) =>
    startSmtp({ ...certificate, ...more })

  describe('a healthy server', () => {
    test('with STARTTLS each mode runs its checks, and all are ok', async () => {
      await using server = await offering(made.good, { size: 10 * 1024 ** 2 })
      const overrides = trusting({ ...account, size: 1024 ** 2, recipient: 'accepted@svc.test' })
      expect(statusesOf(await at(server.port, overrides))).toEqual(['banner ok'])
      expect(server.requests).toEqual([])
      const standard = ['banner', 'TLS', 'certificate', 'hello', 'authentication', 'size', 'sign-in', 'sender'].map(
        (c) => `${c} ok`,
      )
      expect(statusesOf(await at(server.port, overrides, 'Standard'))).toEqual(standard)
      expect(server.requests).toEqual(['AUTH PLAIN monitor', 'MAIL '])
      expect(statusesOf(await at(server.port, overrides, 'Advanced'))).toEqual([...standard, 'recipient ok'])
      await hungUp(server)
    })
    test('it reports what it observes', async () => {
      await using server = await offering(made.good, { size: 10 * 1024 ** 2 })
      const results = await at(server.port, trusting({ ...account, size: 1 }), 'Standard')
      const textOf = (check: string): string => checked(results, check).message
      expect(textOf('banner')).toMatch(
        /^127\.0\.0\.1:\d+ sent "220 mail\.svc\.test ESMTP" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
      )
      expect(textOf('TLS')).toMatch(/speaks TLSv1\.3 with a trusted certificate for svc\.test$/)
      expect(textOf('certificate')).toMatch(/in 89\.9 d \(warn below 20 d, fail below 3 d\)$/)
      expect(textOf('hello')).toContain('PIPELINING, 8BITMIME, SMTPUTF8, AUTH, SIZE')
      expect(textOf('authentication')).toMatch(/offers (PLAIN LOGIN|LOGIN PLAIN)$/)
      expect(textOf('size')).toMatch(/accepts messages up to 10 MiB \(fail below 1 B\)$/)
      expect(textOf('sign-in')).toMatch(/^signed in to 127\.0\.0\.1:\d+ as monitor$/)
    })
    test('with TLS from the first byte', async () => {
      await using server = await offering(made.good, { secure: true })
      const overrides = trusting({ tls: 'implicit', ...account })
      expect(statusesOf(await at(server.port, overrides))).toEqual(['TLS ok', 'banner ok'])
      expect(statusesOf(await at(server.port, overrides, 'Standard'))).toEqual(
        ['TLS', 'certificate', 'banner', 'hello', 'authentication', 'sign-in', 'sender'].map((check) => `${check} ok`),
      )
      await hungUp(server)
    })
    test('with LOGIN as the only mechanism, it signs in with that', async () => {
      await using server = await offering(made.good, { authMethods: ['LOGIN'] })
      expect(checked(await at(server.port, trusting(account), 'Standard'), 'sign-in').status).toBe('ok')
      expect(server.requests).toEqual(['AUTH LOGIN monitor', 'MAIL '])
    })
    test('it sends QUIT, and identifies itself by its address or the configured name', async () => {
      await using server = await startSmtp({ hideSTARTTLS: true })
      await using watcher = await proxy(server.port, 0)
      await at(watcher.port)
      expect(watcher.input()).toBe('QUIT\r\n')
      await at(watcher.port, {}, 'Standard')
      await at(watcher.port, { hello: 'probe.svc.test' }, 'Standard')
      const rest = 'MAIL FROM:<>\r\nRSET\r\nQUIT\r\n'
      expect(watcher.input()).toBe(`QUIT\r\nEHLO [127.0.0.1]\r\n${rest}EHLO probe.svc.test\r\n${rest}`)
    })
  })

  describe('a recipient', () => {
    const recipientResult = async (recipient: string, overrides: Overrides = {}) => {
      await using server = await startSmtp({ hideSTARTTLS: true })
      const result = checked(await at(server.port, { recipient, ...overrides }, 'Advanced'), 'recipient')
      await hungUp(server)
      return { result: result, recipientResult: server.requests }
    }
    test('that is accepted is ok, one refused fails, one deferred warns; no mail is ever sent', async () => {
      const well = await recipientResult('accepted@svc.test')
      expect(well.result).toMatchObject({ status: 'ok' })
      expect(well.result.message).toContain('RCPT TO accepted@svc.test (no mail sent): "250 ')
      expect(well.recipientResult).toEqual(['MAIL ', 'MAIL ', 'RCPT accepted@svc.test'])
      const no = await recipientResult('gone@svc.test', { sender: 'monitor@svc.test' })
      expect(no.result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(no.result.message).toContain('"550 No such user here"')
      expect(no.recipientResult).toEqual(['MAIL monitor@svc.test', 'MAIL monitor@svc.test', 'RCPT gone@svc.test'])
      expect((await recipientResult('later@svc.test')).result).toMatchObject({ status: 'warning' })
    })
    test('is checked in Advanced only', async () => {
      await using server = await startSmtp({ hideSTARTTLS: true })
      await at(server.port, { recipient: 'accepted@svc.test' }, 'Standard')
      expect(server.requests).toEqual(['MAIL '])
    })
  })

  describe('TLS', () => {
    test('an expired certificate, a wrong name and an unknown CA fail, and no password is sent', async () => {
      for (const [certificate, overrides, message] of [
        [made.expired, {}, /expired on \d{4}-/],
        [made.otherHost, {}, /the certificate is not for svc\.test/],
        [made.good, { caFile: undefined }, /does not trust|unknown here/],
      ] as const) {
        for (const secure of [false, true]) {
          await using server = await offering(certificate, { secure })
          const tlsSettings = trusting({ ...account, tls: secure ? 'implicit' : 'starttls', ...overrides } as Overrides)
          const result = checked(await at(server.port, tlsSettings, 'Standard'), 'TLS')
          expect(result).toMatchObject({ status: 'failed', fault: 'tls' })
          expect(result.message).toMatch(message)
          expect(server.requests).toEqual([])
          await hungUp(server)
        }
      }
    })
    test('when the socket beneath TLS is destroyed first, as at a deadline, nothing crashes', async () => {
      await using server = await offering(made.good, { secure: true })
      for (let round = 0; round < 20; round += 1) {
        const raw: Socket[] = []
        const target = { ip: host, port: server.port, address: 'there', signal: AbortSignal.abort(), step: () => {} }
        const open = async (): Promise<Socket> => {
          const socket = await connectTcp(host, server.port, new AbortController().signal)
          raw.push(socket)
          return socket
        }
        const options = { host: 'svc.test', ca: made.ca, verify: true, date: () => new Date(), open }
        const { socket } = await connectTls(target, options)
        for (const one of raw) one.destroy(new Error('the deadline'))
        await Promise.resolve()
        socket.destroy()
        expect(socket.destroyed && raw.every((one) => one.destroyed)).toBe(true)
      }
      await hungUp(server)
    })
    test('five days are a warning', async () => {
      await using server = await offering(made.fiveDays)
      expect(checked(await at(server.port, trusting(), 'Standard'), 'certificate').status).toBe('warning')
    })
    test('missing STARTTLS fails where it is required, and the password is not sent', async () => {
      await using server = await startSmtp({ hideSTARTTLS: true, allowInsecureAuth: true, authInClear: true })
      const must = checked(await at(server.port, trusting({ tls: 'starttls' }), 'Standard'), 'TLS')
      expect(must).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(must.message).toContain('does not offer STARTTLS')
      const results = await at(server.port, trusting(account), 'Standard')
      expect(checked(results, 'TLS').message).toContain('does not offer STARTTLS')
      expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'sign-in').message).toMatch(/the password is not sent to .*: it offers no TLS/)
      expect(server.requests).toEqual([])
    })
    test('a server that accepts passwords before TLS is a warning', async () => {
      await using server = await offering(made.good, { authInClear: true })
      await using open = await peer(
        script({ EHLO: '250-mail\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n', STARTTLS: '454 not now\r\n' }),
      )
      expect(checked(await at(open.port, {}, 'Standard'), 'TLS').message).toContain('refused STARTTLS: "454 not now"')
      const clear = await at(server.port, trusting(), 'Standard')
      expect(checked(clear, 'authentication')).toMatchObject({ status: 'warning' })
    })
    test('clear text after STARTTLS does not count as sent under TLS', async () => {
      const injects = script({
        EHLO: '250-mail\r\n250 STARTTLS\r\n',
        STARTTLS: '220 go\r\n250-mail\r\n250 AUTH PLAIN\r\n',
      })
      await using there = await peer(injects)
      const result = checked(await at(there.port, trusting(account), 'Standard'), 'TLS')
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).toContain('continued in clear text after it had agreed to TLS')
    })
  })

  describe('a sign-in', () => {
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      await using server = await offering()
      const shared = limits()
      const overrides = trusting({ ...account, password: secret('hunter2-wrong') })
      const result = checked(await at(server.port, overrides, 'Standard', { limits: shared, retries: 3 }), 'sign-in')
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toMatch(/refused the sign-in of "monitor": "535 Authentication failed for \[secret\]"/)
      expect(JSON.stringify(result)).not.toContain('hunter2')
      expect(checked(await at(server.port, overrides, 'Standard', { limits: shared }), 'sign-in').message).toMatch(
        /^refused: "535 /,
      )
      expect(server.requests).toHaveLength(1)
    })
    test('a server that cannot check for now has not refused the account', async () => {
      await using server = await offering()
      const overrides = trusting({ ...account, username: 'busy' })
      expect(checked(await at(server.port, overrides, 'Standard'), 'sign-in')).toMatchObject({ fault: 'data' })
    })
    test('a server without a password mechanism is reported', async () => {
      await using server = await offering(made.good, { authMethods: ['XOAUTH2'] })
      const result = checked(await at(server.port, trusting(account), 'Standard'), 'sign-in')
      expect(result.message).toContain('offers no sign-in by PLAIN or LOGIN, only "XOAUTH2"')
    })
    test('a server that echoes the credentials, in whatever form, shows no secret', async () => {
      const forms: Behaviour = (socket) => {
        socket.write('220 x\r\n')
        socket.on('data', (chunk) => {
          const line = chunk.toString().trim()
          socket.write(line.startsWith('EHLO') ? '250-x\r\n250 AUTH PLAIN\r\n' : `535 ${line} ${escapeSequences}\r\n`)
        })
      }
      await using there = await peer(forms, { tls: made.good })
      const results = await at(there.port, trusting({ tls: 'implicit', ...account }), 'Standard')
      expect(checked(results, 'sign-in').message).toContain('[secret]')
      const { username, password } = smtpAccount
      const packed = Buffer.from(`\0${username}\0${password}`).toString('base64')
      for (const form of [password, packed, Buffer.from(password).toString('base64')]) {
        expect(JSON.stringify(results)).not.toContain(form)
      }
      expect(JSON.stringify(results)).not.toMatch(/\\u001b|\\u202e/)
    })
    test('a server that hangs up on the password does not get it again', async () => {
      const leaves: Behaviour = (socket) => {
        socket.write('220 x\r\n')
        let lines = 0
        socket.on('data', () => {
          lines += 1
          if (lines === 1) socket.write('250-x\r\n250 AUTH LOGIN\r\n')
          else if (lines < 4) socket.write('334 \r\n')
          else socket.destroy()
        })
      }
      await using there = await peer(leaves, { tls: made.good })
      const result = checked(await at(there.port, trusting({ tls: 'implicit', ...account }), 'Standard'), 'sign-in')
      expect(result.message).toMatch(/closed the connection instead of answering the password$/)
    })
  })
})

/** A server that answers each command as configured, and anything else with 250. */
const script =
  (answers: Readonly<Record<string, string>>, banner = '220 mail ready\r\n'): Behaviour =>
  (socket) => {
    socket.write(banner)
    socket.on('data', (chunk) => {
      for (const line of chunk.toString('latin1').split('\r\n').slice(0, -1)) {
        socket.write(answers[line.split(' ', 1)[0] ?? ''] ?? '250 ok\r\n')
      }
    })
  }

describe('smtp faults', () => {
  const fault = async (
    behave: Behaviour,
    mode: Mode = 'Basic',
    overrides: Overrides = {},
    timeoutMs = 3_000,
  ): Promise<Result> => {
    await using there = await peer(behave)
    const results = await at(there.port, overrides, mode, { timeoutMs })
    await hungUp(there)
    const bad = results.find(({ status }) => status === 'failed')
    if (!bad) throw new Error(JSON.stringify(results))
    return bad
  }
  test('a banner of several lines is one banner; a slow one exceeds the threshold', async () => {
    await using many = await peer(script({}, '220-mail\r\n220-no spam\r\n220 ready\r\n'))
    expect(checked(await at(many.port), 'banner').message).toContain('sent "220 mail no spam ready"')
    await using slow = await peer(speaks('220 x\r\n', 150))
    expect(checked(await at(slow.port, { latency: { warn: 50 } }), 'banner')).toMatchObject({ status: 'warning' })
    expect(checked(await at(slow.port, { latency: { limit: 50 } }), 'banner')).toMatchObject({ fault: 'threshold' })
  })
  test('a server that refuses all clients reports that itself', async () => {
    expect(await fault(speaks('554 blocked by list.example\r\n'))).toMatchObject({
      check: 'banner',
      fault: 'refused',
      message: expect.stringContaining('sent "554 blocked by list.example": it does not accept mail, or not from here'),
    })
    const full = await fault(speaks('421 too many connections\r\n'), 'Standard')
    expect(full).toMatchObject({ check: 'banner', fault: 'refused' })
    expect(await fault(script({ EHLO: '421 closing\r\n' }), 'Standard')).toMatchObject({
      check: 'hello',
      fault: 'refused',
    })
    expect(await fault(script({ EHLO: '502 unknown\r\n' }), 'Standard')).toMatchObject({
      check: 'hello',
      fault: 'protocol',
    })
  })
  test('another service on that port is identified by its greeting', async () => {
    expect((await fault(speaks('SSH-2.0-OpenSSH_9.2\r\n'))).message).toContain(
      'does not speak SMTP: it sent "SSH-2.0-OpenSSH_9.2"',
    )
    const clear = await fault(speaks('220 mail\r\n'), 'Basic', { tls: 'implicit' })
    expect(clear).toMatchObject({ check: 'TLS', fault: 'tls' })
  })
  test('incomplete, endless, overlong and hostile answers are protocol faults, and end', async () => {
    expect(await fault((socket) => void socket.end('220 ma'))).toMatchObject({ fault: 'protocol' })
    expect(await fault(cutAfter(0, ''), 'Basic', {}, 300)).toMatchObject({ fault: 'timeout' })
    const floods =
      (text: string): Behaviour =>
      (socket) => {
        socket.write('220 x\r\n')
        endless('', text)(socket)
      }
    expect(await fault(floods('250-more\r\n'.repeat(100)), 'Standard')).toMatchObject({ fault: 'protocol' })
    expect(await fault(floods('x'.repeat(4096)), 'Standard')).toMatchObject({ fault: 'protocol' })
    expect(await fault(floods('250 ok\r\n'.repeat(100)), 'Standard')).toMatchObject({ fault: 'protocol' })
    expect(await fault(echo, 'Basic', {}, 300)).toMatchObject({ fault: 'timeout' })
    const mixed = await fault(speaks('220-a\r\n250 b\r\n'))
    expect(mixed).toMatchObject({ fault: 'protocol' })
    const escapes = await fault(speaks(`554 ${escapeSequences}\r\n`))
    expect(escapes.message).toContain('"554 redgnp"')
  })
})

describe('the answer to MAIL FROM', () => {
  const answered = async (mail: string, more: Readonly<Record<string, string>> = {}, overrides: Overrides = {}) => {
    await using there = await peer(script({ EHLO: '250 mail\r\n', MAIL: `${mail}\r\n`, ...more }))
    return checked(await at(there.port, overrides, 'Standard'), 'sender')
  }
  test('counts as greylisting with 450, 451, 4.2.x and 4.7.1 only (simulated)', async () => {
    const greylisting = ['450 later', '451 4.7.1 later', '451 later', '450 4.2.0 later', '471 4.7.1 later']
    for (const mail of greylisting) expect(await answered(mail)).toMatchObject({ status: 'warning' })
    const failures = [
      '452 insufficient system storage',
      '452 4.3.1 later',
      '451 4.3.0 queue file write error',
      '450 4.3.2 not now',
      '452 4.2.2 over quota',
      '454 not now',
      '454 4.7.1 Relay access denied',
      '550 no',
      '553 5.1.8 no',
    ]
    for (const mail of failures) expect(await answered(mail)).toMatchObject({ status: 'failed', fault: 'data' })
  })
  test('H20 names a full server, a full mailbox, a misconfigured one and another fault of its own (simulated)', async () => {
    for (const [mail, cause] of [
      ['452 4.3.1 later', 'no room'],
      ['452 later', 'no room'],
      ['452 4.2.2 over quota', 'the mailbox is full'],
      ['451 4.2.2 over quota', 'the mailbox is full'],
      ['451 4.3.5 Server configuration error', 'is misconfigured'],
      ['451 4.3.0 queue file write error', 'a fault of its own'],
      ['450 4.3.2 not now', 'a fault of its own'],
    ] as const) {
      expect((await answered(mail)).message).toContain(cause)
    }
  })
  test('is not checked if the server wants a sign-in or TLS first (simulated)', async () => {
    const account = await answered('530 5.7.0 Authentication required')
    expect(account).toMatchObject({ status: 'warning', notChecked: 'permission' })
    expect(account.message).toContain('set username and password')
    expect((await answered('530 5.7.0 Must issue a STARTTLS command first')).message).toContain('allow STARTTLS in tls')
  })
  test('is a warning if the server then refuses RSET (simulated)', async () => {
    const result = await answered('250 ok', { RSET: '502 unknown\r\n' })
    expect(result).toMatchObject({ status: 'warning' })
    expect(result.message).toContain('refused RSET: "502 unknown"')
  })
})

test('H20 without a recipient, Advanced offers postmaster, unless the sender is refused already (simulated)', async () => {
  const offered = async (replies: Readonly<Record<string, string>>, overrides: Overrides = {}) => {
    await using there = await peer(script({ EHLO: '250 mail\r\n', MAIL: '250 ok\r\n', RSET: '250 ok\r\n', ...replies }))
    const results = await at(there.port, overrides, 'Advanced')
    return { result: results.find(({ check }) => check === 'postmaster'), input: there.input() }
  }
  const accepted = await offered({ RCPT: '250 ok\r\n' })
  expect(accepted.result).toMatchObject({ status: 'ok' })
  expect(accepted.input).toContain('RCPT TO:<postmaster>\r\nRSET\r\n')
  expect(accepted.input).not.toContain('DATA')
  expect((await offered({ RCPT: '450 4.2.0 greylisted\r\n' })).result).toMatchObject({ status: 'ok' })
  const refused = await offered({ RCPT: '550 no mail\r\n' })
  expect(refused.result).toMatchObject({ status: 'warning' })
  expect(refused.result?.message).toContain('set recipient, or postmaster: false')
  for (const reply of ['501 bad address', '503 5.5.1 no domain', '555 syntax'])
    expect((await offered({ RCPT: `${reply}\r\n` })).result).toMatchObject({ status: 'ok' })
  const full = await offered({ RCPT: '452 4.3.1 full\r\n' })
  expect(full.result?.message).toContain('no room')
  expect((await offered({ MAIL: '550 no\r\n' })).result).toBeUndefined()
  expect((await offered({}, { postmaster: false })).result).toBeUndefined()
  expect((await offered({ RCPT: '250 ok\r\n' }, { recipient: 'a@b.test' })).result).toBeUndefined()
})

test('a missing AUTH is a warning on a port of submission, and ok where mail arrives', () => {
  const offer = { address: 'there', methods: [], inClear: false }
  expect(evaluated(authentication, { ...offer, isSubmission: true })).toMatchObject([{ status: 'warning' }])
  expect(evaluated(authentication, { ...offer, isSubmission: false })).toMatchObject([{ status: 'ok' }])
})

describe('smtp settings', () => {
  const invalid = (overrides: Overrides): string | undefined =>
    smtp.validate?.(withDefaults(smtp.settings, { host: 'h', ...overrides }))
  test('settings that exclude each other, or could inject a line, are reported', () => {
    expect(invalid({ ...account, recipient: 'a.b+c@svc.test', sender: 'm@[127.0.0.1]' })).toBeUndefined()
    expect(invalid({ username: 'm' })).toBe('username requires a password')
    expect(invalid({ ...account, tls: 'off' })).toContain('never sends a password without TLS')
    expect(invalid({ sender: 'a@b' })).toBeUndefined()
    for (const recipient of ['a', 'a@b>\r\nDATA', 'a<b@c', 'a b@c', 'ä@c', 'a@b c']) {
      expect(invalid({ recipient })).toContain('must be an address like')
    }
  })
  test('the target is host and port; a password makes it sign in from Standard on', () => {
    const settings = withDefaults(smtp.settings, { host: 'mail', port: 587, ...account })
    expect(smtp.target?.(settings)).toEqual({ host: 'mail', port: 587 })
    expect(smtp.signsIn?.(settings, 'Basic')).toBeUndefined()
    expect(smtp.signsIn?.(settings, 'Standard')).toBeDefined()
  })
})
