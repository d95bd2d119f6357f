import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits, type Result } from '../../src/core/engine/index.ts'
import smtp from '../../src/core/kinds/smtp/index.ts'
import { connectTcp } from '../../src/core/net/connect.ts'
import { connectTls } from '../../src/core/net/tls-connect.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { type Certificates, makeCertificates, opensslMissing, type ServerCertificate } from '../support/certs.ts'
import {
  type Behaviour,
  blackHole,
  cutAfter,
  echo,
  endless,
  escapeSequences,
  peer,
  refusedPort,
  settled,
  speaks,
} from '../support/faults.ts'
import { suiteWith } from '../support/peer.ts'
import { proxy } from '../support/proxy.ts'
import { checked, type RunKindOptions, runKind, secret, withDefaults } from '../support/run-kind.ts'
import { smtpAccount, startSmtp } from '../support/smtp.ts'
import { hungUp } from '../support/until.ts'

type Given = Partial<Values<typeof smtp.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const host = '127.0.0.1'
const account: Given = { username: smtpAccount.username, password: secret(smtpAccount.password) }
const at = (port: number, given: Given = {}, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
  runKind(smtp, { host, port, ...given }, mode, options)
const shown = (results: readonly Result[]): string[] => results.map(({ check, status }) => `${check} ${status}`)

suiteWith(opensslMissing(), 'smtp', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())
  const trusting = (given: Given = {}): Given => ({ servername: 'svc.test', caFile: made.caFile, ...given })
  const offering = (certificate: ServerCertificate = made.good, more: Parameters<typeof startSmtp>[0] = {}) =>
    startSmtp({ ...certificate, ...more })

  describe('a healthy server', () => {
    test('with STARTTLS each mode runs its checks, and all are well', async () => {
      await using server = await offering(made.good, { size: 10 * 1024 ** 2 })
      const given = trusting({ ...account, size: 1024 ** 2, recipient: 'accepted@svc.test' })
      expect(shown(await at(server.port, given))).toEqual(['banner ok'])
      expect(server.asked).toEqual([])
      const standard = ['banner', 'TLS', 'certificate', 'hello', 'authentication', 'size', 'sign-in'].map(
        (c) => `${c} ok`,
      )
      expect(shown(await at(server.port, given, 'Standard'))).toEqual(standard)
      expect(server.asked).toEqual(['AUTH PLAIN monitor'])
      expect(shown(await at(server.port, given, 'Advanced'))).toEqual([...standard, 'recipient ok'])
      await hungUp(server)
    })
    test('it says what it saw', async () => {
      await using server = await offering(made.good, { size: 10 * 1024 ** 2 })
      const results = await at(server.port, trusting({ ...account, size: 1 }), 'Standard')
      const said = (check: string): string => checked(results, check).message
      expect(said('banner')).toMatch(/^127\.0\.0\.1:\d+ sent "220 mail\.svc\.test ESMTP" in [\d.]+ m?s \(limit 3 s\)$/)
      expect(said('TLS')).toMatch(/speaks TLSv1\.3 with a trusted certificate for svc\.test$/)
      expect(said('certificate')).toMatch(/in 89\.9 d \(at least 3 d\)$/)
      expect(said('hello')).toContain('PIPELINING, 8BITMIME, SMTPUTF8, AUTH, SIZE')
      expect(said('authentication')).toMatch(/offers (PLAIN LOGIN|LOGIN PLAIN)$/)
      expect(said('size')).toMatch(/accepts messages up to 10 MiB \(at least 1 B\)$/)
      expect(said('sign-in')).toMatch(/^signed in to 127\.0\.0\.1:\d+ as monitor$/)
    })
    test('with TLS from the first byte', async () => {
      await using server = await offering(made.good, { secure: true })
      const given = trusting({ tls: 'implicit', ...account })
      expect(shown(await at(server.port, given))).toEqual(['TLS ok', 'banner ok'])
      expect(shown(await at(server.port, given, 'Standard'))).toEqual(
        ['TLS', 'certificate', 'banner', 'hello', 'authentication', 'sign-in'].map((check) => `${check} ok`),
      )
      await hungUp(server)
    })
    test('where LOGIN is all that is offered, it signs in with that', async () => {
      await using server = await offering(made.good, { authMethods: ['LOGIN'] })
      expect(checked(await at(server.port, trusting(account), 'Standard'), 'sign-in').status).toBe('ok')
      expect(server.asked).toEqual(['AUTH LOGIN monitor'])
    })
    test('it says goodbye, and calls itself by its address or as it is told', async () => {
      await using server = await startSmtp({ hideSTARTTLS: true })
      await using watcher = await proxy(server.port, 0)
      await at(watcher.port)
      expect(watcher.heard()).toBe('QUIT\r\n')
      await at(watcher.port, {}, 'Standard')
      await at(watcher.port, { hello: 'probe.svc.test' }, 'Standard')
      expect(watcher.heard()).toBe('QUIT\r\nEHLO [127.0.0.1]\r\nQUIT\r\nEHLO probe.svc.test\r\nQUIT\r\n')
    })
  })

  describe('a recipient', () => {
    const asked = async (recipient: string, given: Given = {}) => {
      await using server = await startSmtp({ hideSTARTTLS: true })
      const found = checked(await at(server.port, { recipient, ...given }, 'Advanced'), 'recipient')
      await hungUp(server)
      return { found, asked: server.asked }
    }
    test('that is accepted is well, one refused fails, one put off warns; no mail is ever sent', async () => {
      const well = await asked('accepted@svc.test')
      expect(well.found).toMatchObject({ status: 'ok' })
      expect(well.found.message).toContain('RCPT TO accepted@svc.test (no mail sent): "250 ')
      expect(well.asked).toEqual(['MAIL ', 'RCPT accepted@svc.test'])
      const no = await asked('gone@svc.test', { sender: 'monitor@svc.test' })
      expect(no.found).toMatchObject({ status: 'failed', fault: 'data' })
      expect(no.found.message).toContain('"550 No such user here"')
      expect(no.asked).toEqual(['MAIL monitor@svc.test', 'RCPT gone@svc.test'])
      expect((await asked('later@svc.test')).found).toMatchObject({ status: 'warning' })
    })
    test('is asked for in Advanced only', async () => {
      await using server = await startSmtp({ hideSTARTTLS: true })
      await at(server.port, { recipient: 'accepted@svc.test' }, 'Standard')
      expect(server.asked).toEqual([])
    })
  })

  describe('TLS', () => {
    test('an expired certificate, a wrong name and an unknown CA fail, and no password is sent', async () => {
      for (const [certificate, given, told] of [
        [made.expired, {}, /expired on \d{4}-/],
        [made.wrongHost, {}, /the certificate is not for svc\.test/],
        [made.good, { caFile: undefined }, /does not trust|unknown here/],
      ] as const) {
        for (const secure of [false, true]) {
          await using server = await offering(certificate, { secure })
          const given2 = trusting({ ...account, tls: secure ? 'implicit' : 'starttls', ...given } as Given)
          const found = checked(await at(server.port, given2, 'Standard'), 'TLS')
          expect(found).toMatchObject({ status: 'failed', fault: 'tls' })
          expect(found.message).toMatch(told)
          expect(server.asked).toEqual([])
          await hungUp(server)
        }
      }
    })
    test('what lies beneath TLS may be destroyed first, as a deadline does: nothing crashes', async () => {
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
    test('STARTTLS that is missing fails where it must be, and the password stays here', async () => {
      await using server = await startSmtp({ hideSTARTTLS: true, allowInsecureAuth: true, authInClear: true })
      const must = checked(await at(server.port, trusting({ tls: 'starttls' }), 'Standard'), 'TLS')
      expect(must).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(must.message).toContain('does not offer STARTTLS')
      const results = await at(server.port, trusting(account), 'Standard')
      expect(checked(results, 'TLS').message).toContain('does not offer STARTTLS')
      expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'sign-in').message).toMatch(/the password is not sent to .*: it offers no TLS/)
      expect(server.asked).toEqual([])
    })
    test('passwords that are taken before TLS are a warning', async () => {
      await using server = await offering(made.good, { authInClear: true })
      await using open = await peer(
        script({ EHLO: '250-mail\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n', STARTTLS: '454 not now\r\n' }),
      )
      expect(checked(await at(open.port, {}, 'Standard'), 'TLS').message).toContain('refused STARTTLS: "454 not now"')
      const clear = await at(server.port, trusting(), 'Standard')
      expect(checked(clear, 'authentication')).toMatchObject({ status: 'warning' })
    })
    test('what is said in the clear after STARTTLS is not taken for said under TLS', async () => {
      const injects = script({
        EHLO: '250-mail\r\n250 STARTTLS\r\n',
        STARTTLS: '220 go\r\n250-mail\r\n250 AUTH PLAIN\r\n',
      })
      await using there = await peer(injects)
      const found = checked(await at(there.port, trusting(account), 'Standard'), 'TLS')
      expect(found).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(found.message).toContain('continued in clear text after it had agreed to TLS')
    })
  })

  describe('a sign-in', () => {
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      await using server = await offering()
      const shared = limits()
      const given = trusting({ ...account, password: secret('hunter2-wrong') })
      const found = checked(await at(server.port, given, 'Standard', { limits: shared, retries: 3 }), 'sign-in')
      expect(found).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(found.message).toMatch(/refused the sign-in of "monitor": "535 Authentication failed for \[secret\]"/)
      expect(JSON.stringify(found)).not.toContain('hunter2')
      expect(checked(await at(server.port, given, 'Standard', { limits: shared }), 'sign-in').message).toContain(
        'not signed in',
      )
      expect(server.asked).toHaveLength(1)
    })
    test('a server that cannot tell for now has refused nobody', async () => {
      await using server = await offering()
      const given = trusting({ ...account, username: 'busy' })
      expect(checked(await at(server.port, given, 'Standard'), 'sign-in')).toMatchObject({ fault: 'data' })
    })
    test('no way that takes a password is told', async () => {
      await using server = await offering(made.good, { authMethods: ['XOAUTH2'] })
      const found = checked(await at(server.port, trusting(account), 'Standard'), 'sign-in')
      expect(found.message).toContain('offers no sign-in by PLAIN or LOGIN, only "XOAUTH2"')
    })
    test('a server that echoes what it is told, in whatever form, shows no secret', async () => {
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
    test('a server that hangs up on the password does not have it told', async () => {
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
      const found = checked(await at(there.port, trusting({ tls: 'implicit', ...account }), 'Standard'), 'sign-in')
      expect(found.message).toMatch(/closed the connection instead of answering the password$/)
    })
  })
})

/** A server that answers each command as told, and anything else with 250. */
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
  const met = async (
    behave: Behaviour,
    mode: Mode = 'Basic',
    given: Given = {},
    timeoutMs = 3_000,
  ): Promise<Result> => {
    await using there = await peer(behave)
    const results = await at(there.port, given, mode, { timeoutMs })
    await hungUp(there)
    const bad = results.find(({ status }) => status === 'failed')
    if (!bad) throw new Error(JSON.stringify(results))
    return bad
  }
  test('refused, black hole and a server that falls silent are told apart; no socket is left', async () => {
    expect(checked(await at(await refusedPort()), 'banner')).toMatchObject({ status: 'failed', fault: 'refused' })
    expect(await met(blackHole, 'Basic', {}, 300)).toMatchObject({ check: 'banner', fault: 'timeout' })
    expect(await met(speaks('220 x\r\n'), 'Standard', {}, 300)).toMatchObject({ check: 'hello', fault: 'timeout' })
    expect(await settled('')).toBe('')
  })
  test('a banner of several lines is one banner; a slow one is a threshold', async () => {
    await using many = await peer(script({}, '220-mail\r\n220-no spam\r\n220 ready\r\n'))
    expect(checked(await at(many.port), 'banner').message).toContain('sent "220 mail no spam ready"')
    await using slow = await peer(speaks('220 x\r\n', 150))
    expect(checked(await at(slow.port, { latency: { warn: 50 } }), 'banner')).toMatchObject({ status: 'warning' })
    expect(checked(await at(slow.port, { latency: { limit: 50 } }), 'banner')).toMatchObject({ fault: 'threshold' })
  })
  test('a server that serves nobody says so itself', async () => {
    expect(await met(speaks('554 blocked by list.example\r\n'))).toMatchObject({
      check: 'banner',
      fault: 'refused',
      message: expect.stringContaining('sent "554 blocked by list.example": it does not accept mail, or not from here'),
    })
    const full = await met(speaks('421 too many connections\r\n'), 'Standard')
    expect(full).toMatchObject({ check: 'banner', fault: 'refused' })
    expect(await met(script({ EHLO: '421 closing\r\n' }), 'Standard')).toMatchObject({
      check: 'hello',
      fault: 'refused',
    })
    expect(await met(script({ EHLO: '502 unknown\r\n' }), 'Standard')).toMatchObject({
      check: 'hello',
      fault: 'protocol',
    })
  })
  test('another service on that port is told by what it says', async () => {
    expect((await met(speaks('SSH-2.0-OpenSSH_9.2\r\n'))).message).toContain(
      'does not speak SMTP: it sent "SSH-2.0-OpenSSH_9.2"',
    )
    const clear = await met(speaks('220 mail\r\n'), 'Basic', { tls: 'implicit' })
    expect(clear).toMatchObject({ check: 'TLS', fault: 'tls' })
  })
  test('cut, endless, overlong and hostile answers are protocol, and end', async () => {
    const began = performance.now()
    expect(await met((socket) => void socket.end('220 ma'))).toMatchObject({ fault: 'protocol' })
    expect(await met(cutAfter(0, ''), 'Basic', {}, 300)).toMatchObject({ fault: 'timeout' })
    const floods =
      (text: string): Behaviour =>
      (socket) => {
        socket.write('220 x\r\n')
        endless('', text)(socket)
      }
    expect(await met(floods('250-more\r\n'.repeat(100)), 'Standard')).toMatchObject({ fault: 'protocol' })
    expect(await met(floods('x'.repeat(4096)), 'Standard')).toMatchObject({ fault: 'protocol' })
    expect(await met(floods('250 ok\r\n'.repeat(100)), 'Standard')).toMatchObject({ fault: 'protocol' })
    expect(await met(echo, 'Basic', {}, 300)).toMatchObject({ fault: 'timeout' })
    const mixed = await met(speaks('220-a\r\n250 b\r\n'))
    expect(mixed).toMatchObject({ fault: 'protocol' })
    const escapes = await met(speaks(`554 ${escapeSequences}\r\n`))
    expect(escapes.message).toContain('"554 redgnp"')
    expect(performance.now() - began).toBeLessThan(10_000)
  })
})

describe('smtp settings', () => {
  const wrong = (given: Given): string | undefined =>
    smtp.validate?.(withDefaults(smtp.settings, { host: 'h', ...given }))
  test('what cannot be used together, or could say a second line, is told', () => {
    expect(wrong({ ...account, recipient: 'a.b+c@svc.test', sender: 'm@[127.0.0.1]' })).toBeUndefined()
    expect(wrong({ username: 'm' })).toBe('username requires a password')
    expect(wrong({ ...account, tls: 'off' })).toContain('never sends a password without TLS')
    expect(wrong({ sender: 'a@b' })).toContain('recipient')
    for (const recipient of ['a', 'a@b>\r\nDATA', 'a<b@c', 'a b@c', 'ä@c', 'a@b c']) {
      expect(wrong({ recipient })).toContain('must be an address like')
    }
  })
  test('the target is host and port; a password makes it sign in from Standard on', () => {
    const settings = withDefaults(smtp.settings, { host: 'mail', port: 587, ...account })
    expect(smtp.target?.(settings)).toEqual({ host: 'mail', port: 587 })
    expect(smtp.signsIn?.(settings, 'Basic')).toBe(false)
    expect(smtp.signsIn?.(settings, 'Standard')).toBe(true)
  })
})
