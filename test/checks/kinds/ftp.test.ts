import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { backlog, isLeftover, probeFile } from '../../../src/core/checks/folders/index.ts'
import { ReplyReader } from '../../../src/core/checks/kinds/ftp/control.ts'
import ftp, { greeting } from '../../../src/core/checks/kinds/ftp/index.ts'
import { roughly, stamp } from '../../../src/core/checks/kinds/ftp/list.ts'
import { folderOf, maySendPassword } from '../../../src/core/checks/kinds/ftp/sign-in.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectFindings, finds } from '../../support/engine/finds.ts'
import {
  checked,
  checksOf,
  evaluated,
  problemsOf,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import { blackHole, escapeSequences, peer, settled, speaks } from '../../support/faults/faults.ts'
import { pours } from '../../support/hostile/servers.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { deafPort, type FtpScript, pasv, scriptedFtp, startFtpServer } from '../../support/servers/ftp-server.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { hungUp } from '../../support/suite/until.ts'

type FtpSettings = Values<typeof ftp.settings>
type Overrides = Partial<FtpSettings>
const host = '127.0.0.1'

describe('ftp against ftp-srv', () => {
  const word = 'correct horse'
  test('lists with both commands, and completes round trips with its own listings', async () => {
    const server = await startFtpServer(word)
    onTestFinished(() => server.remove())

    const overrides: Overrides = { host, port: server.port, tls: 'off', username: 'monitor', password: secret(word) }
    const results = await runKind(ftp, { ...overrides, allowWrites: true, folder: '/' }, 'Advanced')
    expect(problemsOf(results)).toEqual([])
    expect(readdirSync(server.root)).toEqual([])
  })
  test('a wrong password is sent to the server once, whatever the retries', async () => {
    const server = await startFtpServer(word)
    onTestFinished(() => server.remove())

    const overrides: Overrides = {
      host,
      port: server.port,
      tls: 'off',
      username: 'monitor',
      password: secret('wrong-one'),
    }
    await finds(runKind(ftp, overrides, 'Standard', { retries: 5 }), 'sign-in failed (auth)')
    expect(server.passwords()).toEqual(['wrong-one'])
    await finds(runKind(ftp, { ...overrides, password: undefined }, 'Standard'), 'sign-in (auth)')
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
      options,
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
    expect(problemsOf(results)).toEqual([])
    await finds(results, 'banner: …greeted with "220-Welcome 220-to the 229 indented 220 Ready" in…')
  })

  test('a server that accepts a rename without renaming anything fails (simulated)', () =>
    finds(
      run({ answers: { RNTO: '250 Renamed' } }, { allowWrites: true }, 'Advanced'),
      'rename failed (data): …the listing of its folder does not show it…',
    ))
  test('a server that delivers empty listings fails the rename (simulated)', () =>
    finds(run({ listing: '' }, { allowWrites: true }, 'Advanced'), 'rename failed (data)'))
  test('files whose names begin with a dot do not wait in a drop folder, unless `ending` is their name', async () => {
    const old = (name: string) => `type=file;modify=20250101000000; ${name}\r\n`
    const script = { listing: `${old('.bashrc')}${old('.order.xml')}` }
    for (const ending of [undefined, '.xml']) {
      await finds(run(script, { folder: 'in', ending }, 'Advanced'), 'oldest file ok: no file is waiting in "in"')
    }
    await finds(run(script, { folder: 'in', ending: '.bashrc' }, 'Advanced'), 'oldest file failed (threshold)')
  })

  test('a drop folder whose listing has an unknown format is not taken for an empty one (simulated)', async () => {
    const listing = 'ORDER.XML;1 12/20 1-JAN-2025 00:00:00 [SYSTEM]\r\n'
    await finds(
      run({ listing }, { folder: 'in' }, 'Advanced'),
      'oldest file failed (protocol): …in a format that svc cannot read: "ORDER.XML;1…',
    )
    for (const empty of ['', 'total 0\r\n', 'type=cdir;modify=20250101000000; .\r\n']) {
      await finds(run({ listing: empty }, { folder: 'in' }, 'Advanced'), 'oldest file ok')
    }
  })

  describe('before the sign-in', () => {
    test.each([
      ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n'), 'it sent "SSH-2.0-OpenSSH_9.2"'],
      ['an HTTP server', speaks('HTTP/1.1 400 Bad Request\r\n\r\n'), 'it sent "HTTP/1.1 400 Bad Request"'],
      ['an endless line', pours('', 'x'.repeat(4096), 'at once'), 'sent a reply without an end'],
      ['an endless banner', pours('', `220-${'y'.repeat(60)}\r\n`, 'at once'), 'sent a reply without an end'],
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
      await finds(results, 'banner failed (protocol)')
      expect(checked(results, 'banner').message).toContain(message)
      await hungUp(server)
    })
    test('endless banners are not a sign-in, and end with the session', async () => {
      await using server = await peer(pours('', '220 hello\r\n', 'at once'))
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
      expect(checksOf(results)).toEqual(['banner'])
      expect(results[0]).toMatchObject({ status: 'failed', fault, message: expect.stringContaining(message) })
      expect(input).toBe('')
    })
    test('escape sequences of a banner are removed', async () => {
      const result = await one('banner', { banner: `220 a${escapeSequences}b` }, {}, 'Basic')
      expect([...result.message].every((character) => character >= ' ' && character <= '~')).toBe(true)
    })
    test('clear text after AUTH TLS is accepted ends the session: anyone may have sent it', async () => {
      const script = { answers: { AUTH: '234 Go on\r\n230 You are in' } }
      await finds(
        run(script, { tls: 'explicit' }),
        'TLS failed (protocol): …continued in clear text after it had agreed to TLS…',
      )
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
      await finds(run(echo), 'sign-in (auth): …"530 No, [secret] is wrong"…')
    })
    test.each([
      ['530 Sorry, the maximum number of clients (5) for this user are already connected', 'refused'],
      ['421 Service shutting down', 'refused'],
      ['530 Login incorrect', 'auth'],
      ['332 Account please', 'protocol'],
      ['999 What', 'protocol'],
    ])('%s to PASS is %s', (text, fault) => finds(run({ answers: { PASS: text } }), ['sign-in failed', { fault }]))
    test('a 421 between two commands is read and reported as such', async () => {
      const script = { answers: { PASS: '230 Welcome\r\n421 Going down' } }
      const { results } = await run(script)
      const failed = results.find((result) => result.status === 'failed')
      expect(failed).toMatchObject({ fault: 'refused', message: expect.stringContaining('"421 Going down"') })
    })
    test('a line break in a password is refused before anything is sent', async () => {
      const { input } = await expectFindings(run({}, { password: secret('a\r\nDELE x') }), 'sign-in failed (data)')
      expect(input).not.toContain('DELE')
    })
    test('simulated: a password goes to another machine in clear text only where that is allowed', () => {
      expect(maySendPassword('203.0.113.9', false, false)).toBe(false)
      expect(maySendPassword('203.0.113.9', false, true)).toBe(true)
      expect(maySendPassword('203.0.113.9', true, false)).toBe(true)
      expect(maySendPassword('127.0.0.1', false, false)).toBe(true)
      expect(maySendPassword('::1', false, false)).toBe(true)
    })
  })

  describe('at the data connection', () => {
    test('a blocked passive port: the account works, the data connection fails, and the message says which side to check', async () => {
      const deaf = await deafPort('127.0.0.3')
      onTestFinished(() => deaf.close())

      const script = { answers: { PASV: pasv('127.0.0.3', deaf.port) } }
      const { results } = await run(script, {}, 'Standard', { timeoutMs: 4_000 })
      await finds(results, 'EPSV ok')
      const result = checked(results, 'PASV')
      expect(result).toMatchObject({ status: 'failed', fault: 'timeout' })
      expect(result.message).toMatch(
        /^signed in after [\d.]+ ms, PASV returned 127\.0\.0\.3:\d+, connect timed out after [\d.]+ m?s \(control peer 127\.0\.0\.1\): passive address, firewall or passive port range, not the account$/,
      )
      expect(result.details).toEqual([
        'PASV returned a different address than that of the control connection (127.0.0.1)',
      ])
    })
    test('another address that accepts gets nothing until dataHosts lists it', async () => {
      await using elsewhere = await peer(blackHole, { host: '127.0.0.4' })
      const script = { answers: { PASV: pasv('127.0.0.4', elsewhere.port) } }
      await finds(run(script, { allowWrites: true }, 'Advanced'), [
        'PASV warning',
        'not the address of the control connection (127.0.0.1): the port accepts connections, but nothing was sent to it',
      ])
      expect(elsewhere.connections()).toBe(1)
      expect(elsewhere.input()).toBe('')
      await using meant = await peer((socket) => void socket.end('-rw-r--r-- 1 o g 5 Nov 21 04:27 a\r\n'), {
        host: '127.0.0.4',
      })
      await finds(
        run(
          { answers: { PASV: pasv('127.0.0.4', meant.port), LIST: '150 Here\r\n226 Done' } },
          { dataHosts: ['127.0.0.4'], passive: 'PASV' },
        ),
        'PASV ok: …1 entry listed…',
      )
    })
    test.each([
      '227 Passive (0,0,0,0,4,1)',
      '227 Passive (300,0,0,1,4,1)',
      '227 Passive (127,0,0,1,4,256)',
      '227 Passive (224,0,0,1,4,1)',
      '227 Passive (127,0,0,1,0,0)',
      '227 Passive',
      '200 Passive (127,0,0,1,4,1)',
    ])('%s is not address valid address for a data connection', (text) =>
      finds(
        run({ answers: { PASV: text } }, { passive: 'PASV' }),
        'PASV failed (protocol): …no address to connect to…',
      ),
    )
    test.each(['229 Extended (|||0|)', '229 Extended (|||70000|)', '229 Extended (||21|)', '229 Extended'])(
      '%s is not address valid address for a data connection',
      (text) => finds(run({ answers: { EPSV: text } }, { passive: 'EPSV' }), 'EPSV (protocol)'),
    )
    test('an unsupported command is a warning beside one that works, and a failure where it is required', async () => {
      const script = { answers: { EPSV: '500 What?' } }
      await finds(run(script), 'EPSV warning: …passive: PASV…', 'PASV ok')
      await finds(run(script, { passive: 'EPSV' }), 'EPSV failed (protocol)')
    })
    test('H22 a server that ends the session with its first listing fails, and what did not run is named', async () => {
      // The end of the session arrives before that of the listing, so no check is under way then.
      const data = (listing: Socket, control: Socket) =>
        void control.end('226 Done\r\n').once('close', () => listing.end(''))
      await finds(run({ data }, { folder: '/' }, 'Advanced'), 'EPSV ok', [
        'PASV failed (protocol): …closed the connection after it had answered LIST…',
        { details: ['not checked, because the connection ended: data connection, oldest file'] },
      ])
    })
    test('without any passive command that is the failure, and checks that need one are skipped', async () => {
      const script = { answers: { EPSV: '500 What?', PASV: '502 What?' } }
      const { results } = await run(script, { folder: 'in', allowWrites: true }, 'Advanced')
      await finds(results, 'data connection failed (protocol)')
      for (const check of ['oldest file', 'round trip']) {
        expect(checked(results, check)).toMatchObject({ status: 'failed', fault: 'dependency' })
      }
    })
    test('a server that is silent after PASV is reported, and the result of EPSV is kept', () =>
      finds(
        run({ answers: { PASV: () => undefined } }, {}, 'Standard', { timeoutMs: 1_500 }),
        'EPSV ok',
        'PASV failed (timeout): …did not answer PASV within…',
      ))
    test('a server that is silent after LIST is reported as connected', () =>
      finds(run({ answers: { LIST: () => undefined } }, {}, 'Standard', { timeoutMs: 1_500 }), [
        'EPSV failed (timeout)',
        /^signed in after .*, EPSV returned port \d+, connected: .* LIST within /,
      ]))
    test('a data connection that stays silent is reported as such', () =>
      finds(
        run({ data: (_, control) => void control.write('226 Done\r\n') }, {}, 'Standard', { timeoutMs: 1_500 }),
        'EPSV failed (timeout): …the data connection of LIST…',
      ))
    test('a listing that the server breaks off is a protocol fault', () =>
      finds(
        run({ data: (data, control) => void data.end('-rw-r--r-- 1 o', () => control.write('426 Broken off\r\n')) }),
        'EPSV failed (protocol): …aborted the transfer: "426 Broken off"…',
      ))
    test('a session that ends during a listing is a protocol fault', () =>
      finds(
        run({ data: (data, control) => void data.end('half', () => control.destroy()) }),
        'EPSV failed (protocol): …closed the connection instead of answering LIST…',
      ))
    test('a data connection that is reset is a protocol fault', () =>
      finds(
        run({
          data: (data, control) => {
            data.resetAndDestroy()
            control.write('226 Done\r\n')
          },
        }),
        'EPSV failed (protocol)',
      ))
    test.each([
      ['425 Cannot see you', 'refused', 'did not receive our data connection'],
      ['522 Session reuse required', 'tls', 'did not accept the encryption'],
      ['550 No listing', 'data', 'answered LIST with "550 No listing"'],
    ])('%s to LIST is %s', (text, fault, message) =>
      finds(run({ answers: { LIST: text } }), ['EPSV failed', { fault, message: expect.stringContaining(message) }]),
    )
    test('an endless listing is truncated, and the session ends in time', async () => {
      const flood = pours('', '-rw-r--r-- 1 o g 5 Nov 21 04:27 a.txt\r\n'.repeat(500), 'at once')
      const { results } = await run({ data: flood }, {}, 'Standard', { timeoutMs: 2_000 })
      expect(results.some((result) => result.status === 'failed')).toBe(true)
    })
    test('a huge listing is read up to a limit, which is reported', async () => {
      const listing = '-rw-r--r-- 1 o g 5 Nov 21 04:27 a.txt\r\n'.repeat(100_000)
      const data = (to: Socket, control: Socket): void => {
        to.on('close', () => control.write('426 You hung up\r\n'))
        to.end(listing)
      }
      await finds(run({ data }), 'EPSV ok: …more than …', 'PASV ok')
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
      await finds(run({ listing: `${listing}\r\n` }, { folder: 'in' }, 'Advanced'), [
        'oldest file failed (threshold)',
        /"b\.xml", has waited 1\.5 h \(warn 15 min, fail 1 h\)$/,
        { measurement: { limit: 3_600_000 } },
      ])
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
      await finds(run(script, { folder: 'in' }, 'Advanced'), 'oldest file warning: …the server reports no dates…')
    })
    test.each([
      ['another SHA-256', (bytes: Buffer) => Buffer.from(bytes).fill(0, 100, 101 + 64), 'with another SHA-256'],
      ['cut', (bytes: Buffer) => bytes.subarray(0, 60_000), 'as 60000 of 65536 bytes'],
    ])('a file that comes back %s fails the round trip, and is deleted nevertheless', async (_, spoil, message) => {
      const { results, input } = await run({ spoil }, { allowWrites: true }, 'Advanced')
      await finds(results, 'round trip failed (data)')
      expect(checked(results, 'round trip').message).toContain(message)
      await finds(results, 'delete ok')
      expect(input).toMatch(/DELE svc-probe-\S+-renamed\.tmp\r\n/)
    })
    test('a refused rename is reported, and the file is deleted under its first name', async () => {
      const { input } = await expectFindings(
        run({ answers: { RNTO: '550 No' } }, { allowWrites: true }, 'Advanced'),
        'rename failed (data)',
        'delete ok',
      )
      expect(input).toMatch(/DELE svc-probe-[^\r]*[0-9a-f]\.tmp\r\n/)
    })
    test('a file that cannot be deleted is reported', () =>
      finds(run({ answers: { DELE: '550 No' } }, { allowWrites: true }, 'Advanced'), 'delete failed (data)'))
    test('the deadline during a transfer keeps earlier results and leaves nothing open', async () => {
      await finds(
        run({ answers: { STOR: '150 Give' } }, { allowWrites: true }, 'Advanced', { timeoutMs: 1_200 }),
        'PASV ok',
        'round trip failed (timeout)',
      )
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
  test.each(['expired', 'otherHost', 'selfSigned', 'notYetValid'] as const)(
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
      expect(checksOf(results)).toEqual(['TLS'])
      expect(results[0]).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(server.input()).toBe('')
      await hungUp(server)
    },
  )
  test('a certificate that expires soon warns from Standard on', async () => {
    await using server = await scriptedFtp({ peer: { tls: certificates.fiveDays } })
    const overrides: Overrides = { host, port: server.port, tls: 'implicit', caFile: certificates.caFile }
    await finds(runKind(ftp, overrides, 'Standard'), ['certificate warning', { measurement: { unit: 'days' } }])
    expect(checksOf(await runKind(ftp, overrides, 'Basic'))).toEqual(['TLS', 'banner'])
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
    await finds(
      runKind(ftp, { ...overrides, password: secret('word') }, 'Standard', { timeoutMs: 2_000 }),
      'EPSV failed',
    )
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
