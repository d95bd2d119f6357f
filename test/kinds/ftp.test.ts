import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits, type Result } from '../../src/core/engine/index.ts'
import { backlog, isLeftover, probeFile } from '../../src/core/folders/index.ts'
import { ReplyReader } from '../../src/core/kinds/ftp/control.ts'
import ftp, { greeting } from '../../src/core/kinds/ftp/index.ts'
import { roughly, stamp } from '../../src/core/kinds/ftp/list.ts'
import { folderOf, mayHear } from '../../src/core/kinds/ftp/sign-in.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../support/certs.ts'
import { blackHole, endless, escapeSequences, peer, refusedPort, settled, speaks } from '../support/faults.ts'
import { deafPort, type FtpScript, pasv, scriptedFtp, startFtpServer } from '../support/ftp-server.ts'
import { fillDisk } from '../support/full-disk.ts'
import { sessionsLeft } from '../support/own-daemon.ts'
import { peerSuite, suiteWith } from '../support/peer.ts'
import { proxy } from '../support/proxy.ts'
import { checked, evaluated, type RunKindOptions, runKind, secret, withDefaults } from '../support/run-kind.ts'
import { hungUp } from '../support/until.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing, vsftpdPassword } from '../support/vsftpd.ts'

type FtpSettings = Values<typeof ftp.settings>
type Overrides = Partial<FtpSettings>
const host = '127.0.0.1'
const names = (results: readonly Result[]): readonly string[] => results.map((result) => result.check)
const bad = (results: readonly Result[]): readonly string[] =>
  results.filter((result) => result.status !== 'ok').map((result) => `${result.check}: ${result.message}`)

peerSuite(vsftpdMissing ?? opensslMissing(), 'ftp against vsftpd', () => {
  let certificates: Certificates
  let server: Vsftpd
  let plain: Vsftpd
  beforeAll(async () => {
    certificates = makeCertificates()
    server = await startVsftpd({ certificate: certificates.good })
    plain = await startVsftpd()
  })
  afterAll(async () => {
    await server.remove()
    await plain.remove()
    certificates.remove()
  })
  const run = (overrides: Overrides = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      ftp,
      {
        host,
        port: server.port,
        caFile: certificates.caFile,
        username: 'ftp',
        password: secret(vsftpdPassword),
        ...overrides,
      },
      mode,
      options,
    )
  const clear = (overrides: Overrides = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      ftp,
      { host, port: plain.port, tls: 'off', username: 'ftp', password: secret(vsftpdPassword), ...overrides },
      mode,
      options,
    )
  const writes: Overrides = { folder: '/incoming', files: { limit: 5 }, allowWrites: true, probeFolder: 'incoming' }

  describe('a healthy server', () => {
    test('each mode runs its checks over explicit TLS, and leaves no session and no file', async () => {
      const basic = await run(writes, 'Basic')
      expect(bad(basic)).toEqual([])
      expect(names(basic)).toEqual(['banner', 'TLS'])
      const standard = await run(writes, 'Standard')
      expect(bad(standard)).toEqual([])
      expect(names(standard)).toEqual(['banner', 'TLS', 'certificate', 'sign-in', 'PWD', 'EPSV', 'PASV'])
      const advanced = await run({ ...writes, throughput: { limit: 1 } }, 'Advanced')
      expect(bad(advanced)).toEqual([])
      const all = ftp.checks.map((check) => check.name)
      expect(names(advanced)).toEqual(all.filter((name) => name !== 'data connection'))
      expect(advanced.every((result) => result.address === server.address)).toBe(true)
      expect(readdirSync(server.incoming)).toEqual([])
      expect(await sessionsLeft(server)).toBe(0)
    })
    test('it reports what it observes', async () => {
      const results = await run(writes, 'Advanced')
      const textOf = (check: string): string => checked(results, check).message
      expect(textOf('banner')).toMatch(
        /^127\.0\.0\.1:\d+ greeted with "220 \(vsFTPd [\d.]+\)" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
      )
      expect(textOf('TLS')).toMatch(/accepts AUTH TLS and speaks TLSv1\.[23], certificate trusted$/)
      expect(textOf('sign-in')).toMatch(/^signed in to .* as "ftp" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/)
      expect(textOf('PWD')).toBe('the working folder is "/"')
      expect(textOf('EPSV')).toMatch(/^EPSV returned port \d+, 1 entry listed in /)
      expect(textOf('PASV')).toMatch(/^PASV returned 127\.0\.0\.1:\d+, 1 entry listed in /)
      expect(textOf('round trip')).toMatch(/^64 KiB written in .* and read back in .*, same SHA-256$/)
      expect(textOf('oldest file')).toBe('no file is waiting in "/incoming"')
    })
    test('without allowWrites nothing is written, and without a folder none is listed', async () => {
      const results = await run({}, 'Advanced')
      expect(bad(results)).toEqual([])
      expect(names(results)).toEqual(names(await run()))
    })
    test('implicit TLS: everything is encrypted from the first byte', async () => {
      const implicit = await startVsftpd({ certificate: certificates.good, settings: { implicit_ssl: 'YES' } })
      try {
        const results = await run({ ...writes, port: implicit.port, tls: 'implicit' }, 'Advanced')
        expect(bad(results)).toEqual([])
        expect(names(results).slice(0, 3)).toEqual(['TLS', 'banner', 'certificate'])
        expect(await sessionsLeft(implicit)).toBe(0)
      } finally {
        await implicit.remove()
      }
    })
    test('in clear text on this machine, and the sign-in reports that', async () => {
      const results = await clear(writes, 'Advanced')
      expect(bad(results)).toEqual([])
      expect(checked(results, 'sign-in').message).toContain('as "ftp" (unencrypted) in')
      expect(names(results)).not.toContain('TLS')
    })
    test('with only the older ciphers the data connection resumes the session too', async () => {
      const old = await startVsftpd({ certificate: certificates.good, settings: { ssl_ciphers: 'ECDHE+AESGCM' } })
      try {
        expect(bad(await run({ ...writes, port: old.port }, 'Advanced'))).toEqual([])
      } finally {
        await old.remove()
      }
    })
    test('only leftovers of svc are swept', async () => {
      const old = probeFile(1, new Date(Date.now() - 2 * 3_600_000))
      const young = probeFile(1, new Date())
      const others = [young.name, 'svc-probe-of-somebody.tmp', 'report.xml']
      for (const name of [old.name, old.renamed, ...others]) {
        writeFileSync(join(plain.incoming, name), 'x')
        utimesSync(join(plain.incoming, name), 0, 0)
      }
      const results = await clear({ allowWrites: true, probeFolder: '/incoming' }, 'Advanced')
      expect(checked(results, 'sweep').message).toBe('2 of 2 leftovers of earlier round trips deleted')
      expect(readdirSync(plain.incoming).sort()).toEqual([...others].sort())
      const { rmSync } = await import('node:fs')
      for (const name of others) rmSync(join(plain.incoming, name))
    })
    test('the oldest file of the drop folder is found by its own date, to the second', async () => {
      const now = Date.now()
      for (const [name, minutes] of [
        ['b.xml', 20.5],
        ['a.xml', 20],
        ['old.txt', 600],
      ] as const) {
        writeFileSync(join(plain.incoming, name), 'x')
        utimesSync(join(plain.incoming, name), new Date(), new Date(now - minutes * 60_000))
      }
      const results = await clear({ folder: 'incoming', ending: '.xml', files: { limit: 1 } }, 'Advanced')
      const oldest = checked(results, 'oldest file')
      expect(oldest).toMatchObject({ status: 'warning', measurement: { unit: 'milliseconds', limit: 3_600_000 } })
      expect(oldest.message).toMatch(
        /^oldest file of "incoming", "b\.xml", has waited 20\.\d min \(warn 15 min, fail 1 h\)$/,
      )
      expect(oldest.measurement?.value).toBeGreaterThanOrEqual(20.5 * 60_000 - 2_000)
      expect(oldest.measurement?.value).toBeLessThan(20.5 * 60_000 + 30_000)
      expect(checked(results, 'backlog')).toMatchObject({ status: 'failed', measurement: { value: 2 } })
      const { rmSync } = await import('node:fs')
      for (const name of ['a.xml', 'b.xml', 'old.txt']) rmSync(join(plain.incoming, name))
    })
  })

  describe('a server that refuses the sign-in', () => {
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const wrong = { password: secret('hunter2-wrong') }
      const results = await run(wrong, 'Standard', { limits: shared, retries: 3 })
      expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(checked(results, 'sign-in').message).toContain('refused the sign-in of "ftp": "530 Login incorrect."')
      expect(JSON.stringify(results)).not.toContain('hunter2')
      const again = await run(wrong, 'Standard', { limits: shared })
      expect(again).toHaveLength(1)
      expect(again[0]?.message).toContain('not signed in')
    })
    test('a full server is reported by its 421, and the account is not blamed', async () => {
      const full = await startVsftpd({ settings: { max_clients: 1 } })
      let first = connect(full.port, host)
      try {
        // The connection with which its start was awaited may still count.
        for (let text = ''; !text.startsWith('220'); ) {
          text = String(await new Promise((resolve) => first.once('data', resolve)))
          if (text.startsWith('421')) first = connect(full.port, host)
        }
        const result = checked(await clear({ port: full.port }), 'banner')
        expect(result).toMatchObject({ status: 'failed', fault: 'refused' })
        expect(result.message).toMatch(/accepts no sessions now: "421 There are too many connected users/)
      } finally {
        first.destroy()
        await full.remove()
      }
    })
    test('a server that requires TLS is reported as such, and not as a wrong password', async () => {
      const results = await run({ tls: 'off', caFile: undefined })
      expect(checked(results, 'sign-in')).toMatchObject({ fault: 'tls', details: ['next: tls: explicit'] })
      expect(checked(results, 'sign-in').message).toContain('requires TLS to sign in: "530')
    })
    test('a server without TLS gets no password, and the message names the remedy', async () => {
      const result = checked(await run({ port: plain.port }), 'TLS')
      expect(result).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(result.message).toMatch(/does not offer AUTH TLS: "530 Please login with USER and PASS\."$/)
      expect(result.details?.join()).toContain('tls: off')
    })
    test('a private CA that is not configured is a TLS fault', async () => {
      const results = await run({ caFile: undefined })
      expect(names(results)).toEqual(['banner', 'TLS'])
      expect(checked(results, 'TLS')).toMatchObject({ fault: 'tls', message: expect.stringContaining('caFile') })
    })
    test('a server that sends clear text (500 OOPS) under TLS is reported, with a hint', async () => {
      const broken = await startVsftpd({ certificate: certificates.good, settings: { anon_root: '/nonexistent' } })
      try {
        const result = checked(await run({ port: broken.port }), 'sign-in')
        expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
        expect(result.message).toContain('aborted the encrypted connection during PASS')
        expect(result.details?.join()).toContain('500 OOPS')
      } finally {
        await broken.remove()
      }
    })
    test('black hole: the kernel accepts for a stopped server, and the deadline ends the run', async () => {
      await using hole = await peer(blackHole)
      const result = checked(await run({ port: hole.port }, 'Basic', { timeoutMs: 500 }), 'banner')
      expect(result).toMatchObject({ status: 'failed', fault: 'timeout' })
      expect(result.message).toContain('accepted the connection but sent nothing for')
      await hungUp(hole)
    })
    test('slow: answers that are each 150 ms late exceed the threshold, with the value', async () => {
      await using slow = await proxy(plain.port, 150)
      const results = await clear({ port: slow.port, latency: { warn: 50, limit: 120 }, passive: 'EPSV' })
      for (const check of ['banner', 'sign-in']) {
        expect(checked(results, check)).toMatchObject({
          status: 'failed',
          fault: 'threshold',
          measurement: { limit: 120 },
        })
        expect(checked(results, check).measurement?.value).toBeGreaterThan(140)
      }
    })
  })

  describe('data connections', () => {
    test('a wrong passive address is distinguished from EPSV, which works', async () => {
      const wrong = await startVsftpd({ settings: { pasv_address: '127.0.0.2' } })
      try {
        const results = await clear({ port: wrong.port })
        expect(checked(results, 'EPSV').status).toBe('ok')
        expect(checked(results, 'PASV')).toMatchObject({ status: 'failed', fault: 'refused' })
        expect(checked(results, 'PASV').message).toMatch(
          /^signed in after [\d.]+ ms, PASV returned 127\.0\.0\.2:\d+, connect was refused in [\d.]+ ms \(control peer 127\.0\.0\.1\): the same port of the control peer accepts connections, so the passive address is wrong, not the account$/,
        )
      } finally {
        await wrong.remove()
      }
    })
    test('a server without passive data connections is a failure, though neither command fails', async () => {
      const none = await startVsftpd({ settings: { pasv_enable: 'NO' } })
      try {
        const results = await clear({ port: none.port }, 'Standard')
        expect(results.some((result) => result.status === 'failed')).toBe(true)
      } finally {
        await none.remove()
      }
    })
    test('a folder without write permission fails the round trip and leaves nothing to delete', async () => {
      const results = await clear({ allowWrites: true }, 'Advanced')
      expect(checked(results, 'round trip')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'round trip').message).toContain('answered STOR with "553 Could not create file."')
      expect(names(results)).not.toContain('delete')
      expect(checked(results, 'sweep').status).toBe('ok')
    })
    test('a full disk fails the round trip, and the message names the likely cause', async () => {
      const disk = fillDisk(plain.incoming)
      try {
        const results = await clear(writes, 'Advanced')
        expect(checked(results, 'round trip')).toMatchObject({ status: 'failed' })
        expect(checked(results, 'round trip').message).toContain('often a full disk or quota')
      } finally {
        disk.free()
      }
    })
    test('a missing drop folder fails its check, and the round trip continues', async () => {
      const results = await clear({ ...writes, folder: 'gone' }, 'Advanced')
      expect(checked(results, 'oldest file')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'round trip').status).toBe('ok')
      expect(existsSync(join(plain.root, 'gone'))).toBe(false)
    })
  })
})

describe('ftp against ftp-srv', () => {
  const word = 'correct horse'
  test('lists with both commands, and completes round trips with its own listings', async () => {
    const server = await startFtpServer(word)
    try {
      const overrides: Overrides = { host, port: server.port, tls: 'off', username: 'monitor', password: secret(word) }
      const results = await runKind(ftp, { ...overrides, allowWrites: true, folder: '/' }, 'Advanced')
      expect(bad(results)).toEqual([])
      expect(readdirSync(server.root)).toEqual([])
    } finally {
      await server.remove()
    }
  })
  test('a wrong password is sent to the server once, whatever the retries', async () => {
    const server = await startFtpServer(word)
    try {
      const overrides: Overrides = {
        host,
        port: server.port,
        tls: 'off',
        username: 'monitor',
        password: secret('wrong-one'),
      }
      const results = await runKind(ftp, overrides, 'Standard', { retries: 5 })
      expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(server.passwords()).toEqual(['wrong-one'])
      const none = await runKind(ftp, { ...overrides, password: undefined }, 'Standard')
      expect(checked(none, 'sign-in')).toMatchObject({ fault: 'auth' })
    } finally {
      await server.remove()
    }
  })
})

describe('ftp against servers that misbehave', () => {
  const word = 'correct horse'
  const run = async (
    script: FtpScript,
    overrides: Overrides = {},
    mode: ExecutionMode = 'Standard',
    options: RunKindOptions = {},
  ) => {
    await using server = await scriptedFtp(script)
    const results = await runKind(
      ftp,
      { host, port: server.port, tls: 'off', username: 'monitor', password: secret(word), ...overrides },
      mode,
      { timeoutMs: 6_000, ...options },
    )
    await hungUp(server)
    return { results, input: server.input() }
  }
  const one = async (check: string, ...args: Parameters<typeof run>): Promise<Result> =>
    checked((await run(...args)).results, check)

  test('an ordinary server is ok in all modes, with a banner of several lines', async () => {
    const { results } = await run(
      { banner: '220-Welcome\r\n220-to the\r\n  229 indented\r\n220 Ready' },
      { allowWrites: true, folder: 'in' },
      'Advanced',
    )
    expect(bad(results)).toEqual([])
    expect(checked(results, 'banner').message).toContain(
      'greeted with "220-Welcome 220-to the 229 indented 220 Ready" in',
    )
  })

  test('a server that accepts a rename without renaming anything fails (simulated)', async () => {
    const result = await one('rename', { answers: { RNTO: '250 Renamed' } }, { allowWrites: true }, 'Advanced')
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    expect(result.message).toContain('the listing of its folder does not show it')
  })
  test('a server that delivers empty listings fails the rename (simulated)', async () => {
    const result = await one('rename', { listing: '' }, { allowWrites: true }, 'Advanced')
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
  })
  test('files whose names begin with a dot do not wait in a drop folder, unless `ending` is their name', async () => {
    const old = (name: string) => `type=file;modify=20250101000000; ${name}\r\n`
    const script = { listing: `${old('.bashrc')}${old('.order.xml')}` }
    for (const ending of [undefined, '.xml']) {
      const result = await one('oldest file', script, { folder: 'in', ending }, 'Advanced')
      expect(result).toMatchObject({ status: 'ok', message: 'no file is waiting in "in"' })
    }
    const result = await one('oldest file', script, { folder: 'in', ending: '.bashrc' }, 'Advanced')
    expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
  })

  test('a drop folder whose listing has an unknown format is not taken for an empty one (simulated)', async () => {
    const listing = 'ORDER.XML;1 12/20 1-JAN-2025 00:00:00 [SYSTEM]\r\n'
    const result = await one('oldest file', { listing }, { folder: 'in' }, 'Advanced')
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toContain('in a format that svc cannot read: "ORDER.XML;1')
    for (const empty of ['', 'total 0\r\n', 'type=cdir;modify=20250101000000; .\r\n']) {
      expect(await one('oldest file', { listing: empty }, { folder: 'in' }, 'Advanced')).toMatchObject({ status: 'ok' })
    }
  })

  describe('before the sign-in', () => {
    test('refused: nothing listens', async () => {
      const port = await refusedPort()
      const result = checked(await runKind(ftp, { host, port, tls: 'off' }), 'banner')
      expect(result).toMatchObject({ status: 'failed', fault: 'refused' })
      expect(result.message).toContain('nothing listens')
    })
    test.each([
      ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n'), 'it sent "SSH-2.0-OpenSSH_9.2"'],
      ['an HTTP server', speaks('HTTP/1.1 400 Bad Request\r\n\r\n'), 'it sent "HTTP/1.1 400 Bad Request"'],
      ['an endless line', endlessly('x'.repeat(4096)), 'sent a reply without an end'],
      ['an endless banner', endlessly(`220-${'y'.repeat(60)}\r\n`), 'sent a reply without an end'],
      [
        'a half banner',
        (socket: Socket) => void socket.end('220-Wel'),
        'closed the connection before sending anything',
      ],
      ['a closed connection', (socket: Socket) => void socket.end(), 'closed the connection before sending anything'],
      ['a reset', (socket: Socket) => void socket.resetAndDestroy(), 'the connection'],
    ])('%s is a protocol fault, reported at once', async (_, behave, message) => {
      await using server = await peer(behave)
      const results = await runKind(ftp, { host, port: server.port, tls: 'off' }, 'Basic', { timeoutMs: 4_000 })
      expect(checked(results, 'banner')).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(checked(results, 'banner').message).toContain(message)
      await hungUp(server)
    })
    test('endless banners are not a sign-in, and end with the session', async () => {
      await using server = await peer(endlessly('220 hello\r\n'))
      const overrides: Overrides = { host, port: server.port, tls: 'off', username: 'monitor', password: secret(word) }
      const results = await runKind(ftp, overrides, 'Standard', { timeoutMs: 4_000 })
      expect(results.at(-1)).toMatchObject({ status: 'failed', fault: 'protocol' })
      await hungUp(server)
    })
    test.each([
      ['120 Ready in 5 minutes', 'refused', 'is not ready yet'],
      ['421 Too many users', 'refused', 'accepts no sessions now: "421 Too many users"'],
      ['530 Not you', 'protocol', 'greeted with "530 Not you" instead of 220'],
    ])('the banner %s is a failure', async (banner, fault, message) => {
      const { results, input } = await run({ banner })
      expect(names(results)).toEqual(['banner'])
      expect(results[0]).toMatchObject({ status: 'failed', fault, message: expect.stringContaining(message) })
      expect(input).toBe('')
    })
    test('escape sequences of a banner are removed', async () => {
      const result = await one('banner', { banner: `220 a${escapeSequences}b` }, {}, 'Basic')
      expect([...result.message].every((character) => character >= ' ' && character <= '~')).toBe(true)
    })
    test('clear text after AUTH TLS is accepted ends the session: anyone may have sent it', async () => {
      const script = { answers: { AUTH: '234 Go on\r\n230 You are in' } }
      const result = await one('TLS', script, { tls: 'explicit' })
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).toContain('continued in clear text after it had agreed to TLS')
    })
    test('a server that accepts AUTH TLS and does not start it is a TLS fault', async () => {
      const result = await one('TLS', { answers: { AUTH: '234 Go on' } }, { tls: 'explicit' }, 'Standard', {
        timeoutMs: 700,
      })
      expect(['tls', 'timeout']).toContain(result.fault)
    })
  })

  describe('at the sign-in', () => {
    test('a password that an answer repeats is not shown', async () => {
      const echo = { answers: { PASS: ({ argument }: { argument: string }) => `530 No, ${argument} is wrong` } }
      const result = await one('sign-in', echo)
      expect(result).toMatchObject({ fault: 'auth' })
      expect(result.message).toContain('"530 No, [secret] is wrong"')
    })
    test.each([
      ['530 Sorry, the maximum number of clients (5) for this user are already connected', 'refused'],
      ['421 Service shutting down', 'refused'],
      ['530 Login incorrect', 'auth'],
      ['332 Account please', 'protocol'],
      ['999 What', 'protocol'],
    ])('%s to PASS is %s', async (text, fault) => {
      expect(await one('sign-in', { answers: { PASS: text } })).toMatchObject({ status: 'failed', fault })
    })
    test('a 421 between two commands is read and reported as such', async () => {
      const script = { answers: { PASS: '230 Welcome\r\n421 Going down' } }
      const { results } = await run(script)
      const failed = results.find((result) => result.status === 'failed')
      expect(failed).toMatchObject({ fault: 'refused', message: expect.stringContaining('"421 Going down"') })
    })
    test('a line break in a password is refused before anything is sent', async () => {
      const { results, input } = await run({}, { password: secret('a\r\nDELE x') })
      expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(input).not.toContain('DELE')
    })
    test('simulated: a password goes to another machine in clear text only where that is allowed', () => {
      expect(mayHear('203.0.113.9', false, false)).toBe(false)
      expect(mayHear('203.0.113.9', false, true)).toBe(true)
      expect(mayHear('203.0.113.9', true, false)).toBe(true)
      expect(mayHear('127.0.0.1', false, false)).toBe(true)
      expect(mayHear('::1', false, false)).toBe(true)
    })
  })

  describe('at the data connection', () => {
    test('a blocked passive port: the account works, the data connection fails, and the message says which side to check', async () => {
      const deaf = await deafPort('127.0.0.3')
      try {
        const script = { answers: { PASV: pasv('127.0.0.3', deaf.port) } }
        const { results } = await run(script, {}, 'Standard', { timeoutMs: 4_000 })
        expect(checked(results, 'EPSV').status).toBe('ok')
        const result = checked(results, 'PASV')
        expect(result).toMatchObject({ status: 'failed', fault: 'timeout' })
        expect(result.message).toMatch(
          /^signed in after [\d.]+ ms, PASV returned 127\.0\.0\.3:\d+, connect timed out after [\d.]+ m?s \(control peer 127\.0\.0\.1\): passive address, firewall or passive port range, not the account$/,
        )
        expect(result.details).toEqual([
          'PASV returned a different address than that of the control connection (127.0.0.1)',
        ])
      } finally {
        deaf.close()
      }
    })
    test('another address that accepts gets nothing until dataHosts lists it', async () => {
      await using elsewhere = await peer(blackHole, { host: '127.0.0.4' })
      const script = { answers: { PASV: pasv('127.0.0.4', elsewhere.port) } }
      const result = await one('PASV', script, { allowWrites: true }, 'Advanced')
      expect(result.status).toBe('warning')
      expect(result.message).toContain(
        'not the address of the control connection (127.0.0.1): the port accepts connections, but nothing was sent to it',
      )
      expect(elsewhere.connections()).toBe(1)
      expect(elsewhere.input()).toBe('')
      await using meant = await peer((socket) => void socket.end('-rw-r--r-- 1 o g 5 Nov 21 04:27 a\r\n'), {
        host: '127.0.0.4',
      })
      const listed = await one(
        'PASV',
        { answers: { PASV: pasv('127.0.0.4', meant.port), LIST: '150 Here\r\n226 Done' } },
        { dataHosts: ['127.0.0.4'], passive: 'PASV' },
      )
      expect(listed).toMatchObject({ status: 'ok', message: expect.stringContaining('1 entry listed') })
    })
    test.each([
      '227 Passive (0,0,0,0,4,1)',
      '227 Passive (300,0,0,1,4,1)',
      '227 Passive (127,0,0,1,4,256)',
      '227 Passive (224,0,0,1,4,1)',
      '227 Passive (127,0,0,1,0,0)',
      '227 Passive',
      '200 Passive (127,0,0,1,4,1)',
    ])('%s is not address valid address for a data connection', async (text) => {
      const result = await one('PASV', { answers: { PASV: text } }, { passive: 'PASV' })
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).toContain('no address to connect to')
    })
    test.each(['229 Extended (|||0|)', '229 Extended (|||70000|)', '229 Extended (||21|)', '229 Extended'])(
      '%s is not address valid address for a data connection',
      async (text) => {
        expect(await one('EPSV', { answers: { EPSV: text } }, { passive: 'EPSV' })).toMatchObject({ fault: 'protocol' })
      },
    )
    test('an unsupported command is a warning beside one that works, and a failure where it is required', async () => {
      const script = { answers: { EPSV: '500 What?' } }
      const { results } = await run(script)
      expect(checked(results, 'EPSV')).toMatchObject({
        status: 'warning',
        message: expect.stringContaining('passive: PASV'),
      })
      expect(checked(results, 'PASV').status).toBe('ok')
      expect(await one('EPSV', script, { passive: 'EPSV' })).toMatchObject({ status: 'failed', fault: 'protocol' })
    })
    test('without any passive command that is the failure, and checks that need one are skipped', async () => {
      const script = { answers: { EPSV: '500 What?', PASV: '502 What?' } }
      const { results } = await run(script, { folder: 'in', allowWrites: true }, 'Advanced')
      expect(checked(results, 'data connection')).toMatchObject({ status: 'failed', fault: 'protocol' })
      for (const check of ['oldest file', 'round trip']) {
        expect(checked(results, check)).toMatchObject({ status: 'failed', fault: 'dependency' })
      }
    })
    test('a server that is silent after PASV is reported, and the result of EPSV is kept', async () => {
      const { results } = await run({ answers: { PASV: () => undefined } }, {}, 'Standard', { timeoutMs: 1_500 })
      expect(checked(results, 'EPSV').status).toBe('ok')
      expect(checked(results, 'PASV')).toMatchObject({ status: 'failed', fault: 'timeout' })
      expect(checked(results, 'PASV').message).toContain('did not answer PASV within')
    })
    test('a server that is silent after LIST is reported as connected', async () => {
      const { results } = await run({ answers: { LIST: () => undefined } }, {}, 'Standard', { timeoutMs: 1_500 })
      expect(checked(results, 'EPSV')).toMatchObject({ status: 'failed', fault: 'timeout' })
      expect(checked(results, 'EPSV').message).toMatch(
        /^signed in after .*, EPSV returned port \d+, connected: .* LIST within /,
      )
    })
    test('a data connection that stays silent is reported as such', async () => {
      const result = await one('EPSV', { data: (_, control) => void control.write('226 Done\r\n') }, {}, 'Standard', {
        timeoutMs: 1_500,
      })
      expect(result).toMatchObject({ status: 'failed', fault: 'timeout' })
      expect(result.message).toContain('the data connection of LIST')
    })
    test('a listing that the server breaks off is a protocol fault', async () => {
      const result = await one('EPSV', {
        data: (data, control) => void data.end('-rw-r--r-- 1 o', () => control.write('426 Broken off\r\n')),
      })
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).toContain('aborted the transfer: "426 Broken off"')
    })
    test('a session that ends during a listing is a protocol fault', async () => {
      const result = await one('EPSV', { data: (data, control) => void data.end('half', () => control.destroy()) })
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).toContain('closed the connection instead of answering LIST')
    })
    test('a data connection that is reset is a protocol fault', async () => {
      const result = await one('EPSV', {
        data: (data, control) => {
          data.resetAndDestroy()
          control.write('226 Done\r\n')
        },
      })
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    })
    test.each([
      ['425 Cannot see you', 'refused', 'did not receive our data connection'],
      ['522 Session reuse required', 'tls', 'did not accept the encryption'],
      ['550 No listing', 'data', 'answered LIST with "550 No listing"'],
    ])('%s to LIST is %s', async (text, fault, message) => {
      const result = await one('EPSV', { answers: { LIST: text } })
      expect(result).toMatchObject({ status: 'failed', fault, message: expect.stringContaining(message) })
    })
    test('an endless listing is truncated, and the session ends in time', async () => {
      const flood = (data: Socket): void => {
        const more = (): void => {
          if (data.destroyed) return
          if (data.write('-rw-r--r-- 1 o g 5 Nov 21 04:27 a.txt\r\n'.repeat(500))) setImmediate(more)
          else data.once('drain', more)
        }
        more()
      }
      const { results } = await run({ data: flood }, {}, 'Standard', { timeoutMs: 2_000 })
      expect(results.some((result) => result.status === 'failed')).toBe(true)
    })
    test('a huge listing is read up to a limit, which is reported', async () => {
      const listing = '-rw-r--r-- 1 o g 5 Nov 21 04:27 a.txt\r\n'.repeat(100_000)
      const data = (to: Socket, control: Socket): void => {
        to.on('close', () => control.write('426 You hung up\r\n'))
        to.end(listing)
      }
      const { results } = await run({ data })
      expect(checked(results, 'EPSV')).toMatchObject({ status: 'ok', message: expect.stringContaining('more than ') })
      expect(checked(results, 'PASV').status).toBe('ok')
    })
  })

  describe('files', () => {
    const day = (ms: number): string => new Date(ms).toISOString().replace(/[-:T]|\..*/g, '')
    test('MLSD dates files, and folders do not count', async () => {
      const now = Date.now()
      const listing = [
        `type=cdir;modify=${day(0)}; .`,
        `type=dir;modify=${day(0)}; old-folder`,
        `type=file;size=5;modify=${day(now - 90 * 60_000)}; b.xml`,
        `type=file;size=5;modify=${day(now - 10 * 60_000)}; a.xml`,
      ].join('\r\n')
      const result = await one('oldest file', { listing: `${listing}\r\n` }, { folder: 'in' }, 'Advanced')
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold', measurement: { limit: 3_600_000 } })
      expect(result.message).toMatch(/"b\.xml", has waited 1\.5 h \(warn 15 min, fail 1 h\)$/)
    })
    test('names with line breaks and escapes neither reach a command nor a terminal', async () => {
      const listing = [
        '-rw-r--r-- 1 o g 5 Jan 01 2020 a\rDELE b',
        `-rw-r--r-- 1 o g 5 Jan 02 2020 c${escapeSequences}d`,
        '-rw-r--r-- 1 o g 5 Jan 03 2020 e\u202ef.txt',
      ].join('\r\n')
      const script = { listing, answers: { FEAT: '502 No', MDTM: '213 20200103000000' } }
      const { results, input } = await run(script, { folder: 'in' }, 'Advanced')
      const result = checked(results, 'oldest file')
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(result.message).toContain('"ef.txt"')
      expect(input).not.toContain('DELE')
      expect(input.match(/MDTM/g)).toHaveLength(1)
    })
    test('a server that dates no file is a warning, never ok', async () => {
      const script = { answers: { FEAT: '502 No', MDTM: '502 No' } }
      const result = await one('oldest file', script, { folder: 'in' }, 'Advanced')
      expect(result).toMatchObject({
        status: 'warning',
        message: expect.stringContaining('the server reports no dates'),
      })
    })
    test.each([
      ['another SHA-256', (bytes: Buffer) => Buffer.from(bytes).fill(0, 100, 101 + 64), 'with another SHA-256'],
      ['cut', (bytes: Buffer) => bytes.subarray(0, 60_000), 'as 60000 of 65536 bytes'],
    ])('a file that comes back %s fails the round trip, and is deleted nevertheless', async (_, spoil, message) => {
      const { results, input } = await run({ spoil }, { allowWrites: true }, 'Advanced')
      expect(checked(results, 'round trip')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'round trip').message).toContain(message)
      expect(checked(results, 'delete').status).toBe('ok')
      expect(input).toMatch(/DELE svc-probe-\S+-renamed\.tmp\r\n/)
    })
    test('a refused rename is reported, and the file is deleted under its first name', async () => {
      const { results, input } = await run({ answers: { RNTO: '550 No' } }, { allowWrites: true }, 'Advanced')
      expect(checked(results, 'rename')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'delete').status).toBe('ok')
      expect(input).toMatch(/DELE svc-probe-[^\r]*[0-9a-f]\.tmp\r\n/)
    })
    test('a file that cannot be deleted is reported', async () => {
      const { results } = await run({ answers: { DELE: '550 No' } }, { allowWrites: true }, 'Advanced')
      expect(checked(results, 'delete')).toMatchObject({ status: 'failed', fault: 'data' })
    })
    test('the deadline during a transfer keeps earlier results and leaves nothing open', async () => {
      const { results } = await run({ answers: { STOR: '150 Give' } }, { allowWrites: true }, 'Advanced', {
        timeoutMs: 1_200,
      })
      expect(checked(results, 'PASV').status).toBe('ok')
      expect(checked(results, 'round trip')).toMatchObject({ status: 'failed', fault: 'timeout' })
      expect(await settled('')).toBe('')
    })
  })
})

suiteWith(opensslMissing(), 'ftp certificates', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates()
  })
  afterAll(() => certificates.remove())
  test.each(['expired', 'wrongHost', 'selfSigned', 'notYetValid'] as const)(
    'a certificate that is %s ends the session before the account is sent',
    async (name) => {
      await using server = await scriptedFtp({ peer: { tls: certificates[name] } })
      const overrides: Overrides = {
        host,
        port: server.port,
        tls: 'implicit',
        username: 'monitor',
        password: secret('word'),
      }
      const results = await runKind(ftp, { ...overrides, caFile: certificates.caFile }, 'Standard')
      expect(names(results)).toEqual(['TLS'])
      expect(results[0]).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(server.input()).toBe('')
      await hungUp(server)
    },
  )
  test('a certificate that expires soon warns from Standard on', async () => {
    await using server = await scriptedFtp({ peer: { tls: certificates.fiveDays } })
    const overrides: Overrides = { host, port: server.port, tls: 'implicit', caFile: certificates.caFile }
    expect(checked(await runKind(ftp, overrides, 'Standard'), 'certificate')).toMatchObject({
      status: 'warning',
      measurement: { unit: 'days' },
    })
    expect(names(await runKind(ftp, overrides, 'Basic'))).toEqual(['TLS', 'banner'])
  })
  test('a data connection without TLS under an encrypted session is a failure', async () => {
    await using server = await scriptedFtp({ peer: { tls: certificates.good } })
    const overrides: Overrides = {
      host,
      port: server.port,
      tls: 'implicit',
      caFile: certificates.caFile,
      username: 'monitor',
    }
    const result = checked(
      await runKind(ftp, { ...overrides, password: secret('word') }, 'Standard', { timeoutMs: 2_000 }),
      'EPSV',
    )
    expect(result.status).toBe('failed')
    await hungUp(server)
  })
})

describe('ftp settings and evaluation', () => {
  const settings = (overrides: Overrides): FtpSettings => withDefaults(ftp.settings, { host, ...overrides })
  test.each([
    [{ password: secret('x') }, 'password needs a username'],
    [{ tls: 'off', caFile: '/ca.pem' }, 'caFile needs TLS'],
    [{ tls: 'off', servername: 'a' }, 'servername needs TLS'],
    [{ folder: '/in' }, 'folder needs a username'],
    [{ allowWrites: true }, 'allowWrites needs a username'],
    [{ username: 'a\r\nDELE b' }, 'username holds a control character'],
    [{ username: 'a', folder: 'a\nb' }, 'folder holds a control character'],
    [{ username: 'a', probeSize: 5 * 1024 * 1024 }, 'probeSize must be 1B to 4MiB'],
  ] satisfies [Overrides, string][])('%j cannot be used together', (overrides, message) => {
    expect(ftp.validate?.(settings(overrides))).toContain(message)
  })
  test('the port follows the encryption, and the target includes it', () => {
    expect(ftp.target?.(settings({}))).toEqual({ host, port: 21 })
    expect(ftp.target?.(settings({ tls: 'implicit' }))).toEqual({ host, port: 990 })
    expect(ftp.target?.(settings({ port: 2121 }))).toEqual({ host, port: 2121 })
  })
  test('it signs in from Standard on, and only with an account', () => {
    expect(ftp.signsIn?.(settings({ username: 'a' }), 'Basic')).toBeUndefined()
    expect(ftp.signsIn?.(settings({ username: 'a' }), 'Standard')).toBeDefined()
    expect(ftp.signsIn?.(settings({}), 'Advanced')).toBeUndefined()
  })
  test('values at the boundaries of age, files and latency are ok', () => {
    const age = (minutes: number, files = 1) =>
      evaluated(
        backlog,
        {
          folder: 'in',
          files,
          more: false,
          oldest: { name: 'a', ms: minutes * 60_000, at: new Date(0) },
          undated: false,
        },
        { folder: 'in', files: { warn: 2, limit: 3 } },
      ).map((result) => result.status)
    expect([15, 15.01, 60, 60.01].map((minutes) => age(minutes)[0])).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect([2, 3, 4].map((files) => age(1, files)[1])).toEqual(['ok', 'warning', 'failed'])
    const banner = (ms: number) =>
      evaluated(greeting, { address: 'a:21', code: 220, text: '"220"', ms }).map((result) => result.status)
    expect([1_000, 1_000.1, 3_000, 3_000.1].flatMap(banner)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
  test('replies in pieces are joined, and lines within a multi-line reply may resemble its end', () => {
    const reader = new ReplyReader('a:21', (input) => String(input))
    const pieces = ['220-o', 'ne\r\n 220 two\r\n221 three\r', '\n220', ' four\r\n331 x\r\n\r\n', '200\n']
    const data = pieces.flatMap((piece) => reader.push(Buffer.from(piece)))
    expect(data.map((reply) => reply.code)).toEqual([220, 331, 200])
    expect(data[0]?.text).toBe('220-one\n 220 two\n221 three\n220 four')
    expect(reader.started).toBe(false)
  })
  test('quotes in the folder of a PWD are unescaped, and control characters make it invalid', () => {
    const of = (text: string) => folderOf({ code: 257, text })
    expect(of('257 "/a ""b"" c" is current')).toBe('/a "b" c')
    expect(of('257 "/a\x1bb"')).toBeUndefined()
    expect(of('257 /a')).toBeUndefined()
  })
  test('dates of listings order files, and a missing year is derived from today', () => {
    const now = new Date('2026-02-10T12:00:00Z')
    const iso = (written: string): string => new Date(roughly(written, now)).toISOString().slice(0, 16)
    expect(iso('Feb 9 04:27')).toBe('2026-02-09T04:27')
    expect(iso('Nov 21 04:27')).toBe('2025-11-21T04:27')
    expect(iso('Nov 21 2019')).toBe('2019-11-21T00:00')
    expect(iso('11-21-24 04:27PM')).toBe('2024-11-21T16:27')
    expect(iso('2024-11-21 04:27')).toBe('2024-11-21T04:27')
    expect(roughly('gibberish', now)).toBe(0)
    expect(stamp('213 20261121042700.123')?.toISOString()).toBe('2026-11-21T04:27:00.000Z')
    expect(stamp('213 20261399042700')).toBeUndefined()
    expect(stamp('213 yesterday')).toBeUndefined()
  })
  test('only files of svc that are over an hour old are leftovers', () => {
    const now = new Date('2026-11-21T12:00:00Z')
    const made = probeFile(4, new Date('2026-11-21T10:59:59Z'))
    expect([isLeftover(made.name, now), isLeftover(made.renamed, now)]).toEqual([true, true])
    expect(isLeftover(probeFile(4, new Date('2026-11-21T11:00:00Z')).name, now)).toBe(false)
    for (const name of [`${made.name}.xml`, `a/${made.name}`, `../${made.name}`, made.name.toUpperCase()]) {
      expect(isLeftover(name, now)).toBe(false)
    }
  })
})

/** Says the same without being asked, for ever, as fast as it is read. */
function endlessly(chunk: string) {
  return (socket: Socket): void => {
    const begin = endless('', chunk)
    begin(socket)
    socket.emit('data', Buffer.alloc(0))
  }
}
