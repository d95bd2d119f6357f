import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { probeFile } from '../../../src/core/health/files/probe-file.ts'
import { hostKeyOf } from '../../../src/core/health/files/sftp-open.ts'
import type { SftpSettings } from '../../../src/core/health/files/sftp-settings.ts'
import { type Finding, limits } from '../../../src/core/health/index.ts'
import sftp from '../../../src/core/health/monitors/sftp.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { blackHole, escapeSequences, peer, refusedPort, settled, speaks } from '../../support/faults.ts'
import { sessionsLeft } from '../../support/own-daemon.ts'
import { suiteWith } from '../../support/peer.ts'
import { proxy } from '../../support/proxy.ts'
import { checked, type RunKindOptions, runKind, secret, withDefaults } from '../../support/run-kind.ts'
import { type SftpOptions, type SftpServer, startSftpServer } from '../../support/sftp-server.ts'
import { type Sshd, sshdMissing, startSshd } from '../../support/sshd.ts'
import { hungUp } from '../../support/until.ts'

type Given = Partial<SftpSettings>
const host = '127.0.0.1'
const names = (findings: readonly Finding[]): readonly string[] => findings.map((finding) => finding.check)
const bad = (findings: readonly Finding[]): readonly string[] =>
  findings.filter((finding) => finding.level !== 'ok').map((finding) => `${finding.check}: ${finding.message}`)
const strange = `SHA256:${'A'.repeat(43)}`

suiteWith(sshdMissing, 'sftp against OpenSSH', () => {
  let server: Sshd
  beforeAll(async () => {
    server = await startSshd()
  })
  afterAll(() => server.remove())
  const run = (given: Given = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      sftp,
      {
        host,
        port: server.port,
        username: server.user,
        privateKey: secret(server.privateKey),
        hostKey: [server.hostKey],
        ...given,
      },
      mode,
      options,
    )
  const signedIn = (): number => server.log().match(/Accepted publickey/g)?.length ?? 0

  test('each mode runs its checks, and leaves no session and no file', async () => {
    const writes: Given = {
      folder: server.files,
      files: { limit: 5 },
      allowWrites: true,
      probeFolder: server.files,
      throughput: { limit: 1 },
    }
    const basic = await run(writes, 'Basic')
    expect(bad(basic)).toEqual([])
    expect(names(basic)).toEqual(['banner'])
    const standard = await run(writes, 'Standard')
    expect(bad(standard)).toEqual([])
    expect(names(standard)).toEqual(['banner', 'host key', 'sign-in', 'listing'])
    const advanced = await run(writes, 'Advanced')
    expect(bad(advanced)).toEqual([])
    expect(names(advanced)).toEqual(sftp.checks.map((check) => check.name))
    expect(advanced.every((finding) => finding.address === server.address)).toBe(true)
    expect(readdirSync(server.files)).toEqual([])
    expect(await sessionsLeft(server)).toBe(0)
  })
  test('it says what it saw', async () => {
    const findings = await run()
    const said = (check: string): string => checked(findings, check).message
    expect(said('banner')).toMatch(/^127\.0\.0\.1:\d+ said "SSH-2\.0-OpenSSH_.*" in [\d.]+ m?s \(limit 3 s\)$/)
    expect(said('host key')).toBe(`${server.address} showed ssh-ed25519 ${server.hostKey}`)
    expect(said('sign-in')).toMatch(new RegExp(`^signed in at .* as "${server.user}" in [\\d.]+ m?s`))
    expect(said('listing')).toMatch(/^(?:more than )?\d+ entr(?:y|ies) of "\/.*" listed in /)
  })
  test('4 MiB come back the same, in many requests at once', async () => {
    const given: Given = { allowWrites: true, probeFolder: server.files, probeSize: 4 * 1024 * 1024 }
    const findings = await run(given, 'Advanced')
    expect(bad(findings)).toEqual([])
    expect(checked(findings, 'round trip').message).toContain('4 MiB written in')
    expect(readdirSync(server.files)).toEqual([])
  })
  test('a key under a passphrase, and one without its newline at the end', async () => {
    const locked = { privateKey: secret(server.lockedKey), passphrase: secret('correct horse') }
    expect(bad(await run(locked))).toEqual([])
    expect(bad(await run({ privateKey: secret(server.privateKey.trimEnd()) }))).toEqual([])
  })
  test.each([
    ['a wrong passphrase', 'locked', 'battery staple', 'its passphrase is missing or wrong'],
    ['no passphrase', 'locked', undefined, 'its passphrase is missing or wrong'],
    ['no key at all', 'battery staple', undefined, 'it is not a private key'],
  ])('%s is told before anything is opened, and not shown', async (_, which, passphrase, told) => {
    const given: Given = {
      privateKey: secret(which === 'locked' ? server.lockedKey : which),
      ...(passphrase === undefined ? {} : { passphrase: secret(passphrase) }),
    }
    const findings = await run(given)
    expect(findings).toHaveLength(1)
    expect(findings[0]).toMatchObject({ check: 'sign-in', level: 'fail', fault: 'internal' })
    expect(findings[0]?.message).toContain(told)
    expect(JSON.stringify(findings)).not.toContain('battery')
  })
  test('a key that opens nothing is auth, and is not tried again soon', async () => {
    const shared = limits()
    const stranger = { privateKey: secret(server.strangerKey) }
    const findings = await run(stranger, 'Standard', { limits: shared, retries: 3 })
    expect(checked(findings, 'host key').level).toBe('ok')
    expect(checked(findings, 'sign-in')).toMatchObject({ level: 'fail', fault: 'auth' })
    expect(checked(findings, 'sign-in').message).toBe(`${server.address} did not let "${server.user}" in by publickey`)
    const again = await run(stranger, 'Standard', { limits: shared })
    expect(again).toHaveLength(1)
    expect(again[0]?.message).toContain('not signed in')
  })
  test('a password where only keys are taken is told as such', async () => {
    const findings = await run({ privateKey: undefined, password: secret('correct horse') })
    expect(checked(findings, 'sign-in')).toMatchObject({ level: 'fail', fault: 'auth' })
    expect(checked(findings, 'sign-in').message).toContain('in none of the ways that are configured')
  })
  test('without hostKey nobody signs in, and the one that was seen is told', async () => {
    const before = signedIn()
    const findings = await run({ hostKey: undefined })
    expect(names(findings)).toEqual(['banner', 'host key'])
    expect(checked(findings, 'host key')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(checked(findings, 'host key').message).toContain(`showed ssh-ed25519 ${server.hostKey}, and no hostKey`)
    expect(await sessionsLeft(server)).toBe(0)
    expect(signedIn()).toBe(before)
  })
  test('with another hostKey nobody signs in, and what to compare with is told', async () => {
    const before = signedIn()
    const findings = await run({ hostKey: [strange] })
    expect(names(findings)).toEqual(['banner', 'host key'])
    expect(checked(findings, 'host key')).toMatchObject({ level: 'fail', fault: 'tls' })
    expect(checked(findings, 'host key').message).toContain('which hostKey does not name')
    expect(checked(findings, 'host key').details?.join()).toContain('ssh-keygen -lf')
    expect(await sessionsLeft(server)).toBe(0)
    expect(signedIn()).toBe(before)
  })
  test('one of several hostKeys is enough, with or without the padding of base64', async () => {
    expect(bad(await run({ hostKey: [strange, `${server.hostKey}=`] }))).toEqual([])
  })
  test('without an account the host key is told, and well', async () => {
    const findings = await run({ username: undefined, privateKey: undefined, hostKey: undefined })
    expect(bad(findings)).toEqual([])
    expect(names(findings)).toEqual(['banner', 'host key'])
    const known = await run({ username: undefined, privateKey: undefined })
    expect(bad(known)).toEqual([])
  })
  test('the oldest file of the drop folder is found by its date, folders and other endings aside', async () => {
    const now = Date.now()
    const write = (name: string, minutes: number): void => {
      writeFileSync(join(server.files, name), 'x')
      utimesSync(join(server.files, name), new Date(), new Date(now - minutes * 60_000))
    }
    write('a.xml', 20)
    write('b.xml', 90)
    write('old.txt', 600)
    const findings = await run({ folder: server.files, ending: '.xml', files: { limit: 1 } }, 'Advanced')
    const oldest = checked(findings, 'oldest file')
    expect(oldest).toMatchObject({ level: 'fail', fault: 'threshold', limit: 3_600_000 })
    expect(oldest.message).toMatch(/"b\.xml", waits 1\.5 h \(limit 1 h\)$/)
    expect(checked(findings, 'backlog')).toMatchObject({ level: 'fail', observed: 2 })
    const { rmSync } = await import('node:fs')
    for (const name of ['a.xml', 'b.xml', 'old.txt']) rmSync(join(server.files, name))
  })
  test('leftovers of our own are swept, and nothing else is', async () => {
    const old = probeFile(1, new Date(Date.now() - 2 * 3_600_000))
    const young = probeFile(1, new Date())
    const others = [young.name, 'report.xml']
    for (const name of [old.name, old.renamed, ...others]) writeFileSync(join(server.files, name), 'x')
    const findings = await run({ allowWrites: true, probeFolder: server.files }, 'Advanced')
    expect(checked(findings, 'sweep').message).toBe('2 of 2 leftovers of earlier round trips deleted')
    expect(readdirSync(server.files).sort()).toEqual([...others].sort())
    const { rmSync } = await import('node:fs')
    for (const name of others) rmSync(join(server.files, name))
  })
  test('a drop folder that is not there fails its check, and the round trip goes on', async () => {
    const given: Given = { folder: '/gone/for/good', allowWrites: true, probeFolder: server.files }
    const findings = await run(given, 'Advanced')
    expect(checked(findings, 'oldest file')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(checked(findings, 'oldest file').message).toMatch(/refused opening "\/gone\/for\/good": "No such file/)
    expect(checked(findings, 'round trip').level).toBe('ok')
  })
  test('a server without SFTP is told apart from a refused sign-in', async () => {
    const without = await startSshd(['ForceCommand false'])
    try {
      const findings = await run({
        port: without.port,
        hostKey: [without.hostKey],
        privateKey: secret(without.privateKey),
      })
      expect(checked(findings, 'sign-in').level).toBe('ok')
      expect(checked(findings, 'listing')).toMatchObject({ level: 'fail' })
      expect(checked(findings, 'listing').fault).not.toBe('auth')
    } finally {
      await without.remove()
    }
  })
  test('slow: each answer late by 150 ms is a threshold, with the figure', async () => {
    await using slow = await proxy(server.port, 150)
    const findings = await run({ port: slow.port, latency: { warn: 50, limit: 120 } })
    for (const check of ['banner', 'sign-in', 'listing']) {
      expect(checked(findings, check)).toMatchObject({ level: 'fail', fault: 'threshold', limit: 120 })
      expect(checked(findings, check).observed).toBeGreaterThan(140)
    }
  })
})

describe('sftp with passwords', () => {
  const word = 'correct horse'
  const run = async (
    options: SftpOptions,
    given: Given | ((server: SftpServer) => Given) = {},
    mode: ExecutionMode = 'Standard',
    world: RunKindOptions = {},
  ) => {
    await using server = await startSftpServer(options)
    const more = typeof given === 'function' ? given(server) : given
    const base = { host, port: server.port, username: 'monitor', password: secret(word), hostKey: [server.hostKey] }
    const findings = await runKind(sftp, { ...base, ...more }, mode, { timeoutMs: 6_000, ...world })
    await hungUp(server)
    return { findings, server }
  }

  test.each(['password', 'keyboard-interactive'] as const)('%s lets in, and is said once', async (method) => {
    const { findings, server } = await run({ method })
    expect(bad(findings)).toEqual([])
    expect(server.heard()).toEqual([word])
  })
  test.each(['password', 'keyboard-interactive'] as const)(
    'a wrong one by %s is auth, is said once whatever the retries, and is not shown',
    async (method) => {
      const { findings, server } = await run({ method }, { password: secret('hunter2-wrong') }, 'Standard', {
        retries: 5,
      })
      expect(checked(findings, 'sign-in')).toMatchObject({ level: 'fail', fault: 'auth' })
      expect(checked(findings, 'sign-in').message).toContain(`did not let "monitor" in by ${method}`)
      expect(server.heard()).toEqual(['hunter2-wrong'])
      expect(JSON.stringify(findings)).not.toContain('hunter2')
    },
  )
  test('a server whose key is unknown never hears a password, nor that somebody tries', async () => {
    for (const hostKey of [undefined, [strange]]) {
      const { findings, server } = await run({}, { hostKey })
      expect(names(findings)).toEqual(['banner', 'host key'])
      expect(server.heard()).toEqual([])
      expect(server.tries()).toBe(0)
    }
  })
  test('a round trip in memory, and the listing of a folder with files', async () => {
    const files = { '/home/in/a.txt': { bytes: Buffer.from('x'), at: new Date(Date.now() - 20 * 60_000) } }
    const { findings, server } = await run({ files }, { folder: 'in', allowWrites: true }, 'Advanced')
    expect(names(findings)).toEqual(expect.arrayContaining(['round trip', 'rename', 'delete', 'sweep']))
    expect(checked(findings, 'oldest file')).toMatchObject({ level: 'warn' })
    expect(bad(findings)).toHaveLength(1)
    expect([...server.files.keys()]).toEqual(['/home/in/a.txt'])
  })
  test.each([
    ['another SHA-256', (bytes: Buffer) => Buffer.from(bytes).fill(0, 100, 164), 'with another SHA-256'],
    ['cut', (bytes: Buffer) => bytes.subarray(0, 60_000), 'as 60000 of 65536 bytes'],
  ])('a file that comes back %s fails the round trip, and is deleted all the same', async (_, spoil, told) => {
    const { findings, server } = await run({ spoil }, { allowWrites: true }, 'Advanced')
    expect(checked(findings, 'round trip')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(checked(findings, 'round trip').message).toContain(told)
    expect(checked(findings, 'delete').level).toBe('ok')
    expect(server.files.size).toBe(0)
  })
  test('a folder that may not be written fails the round trip, and what it says is passed on', async () => {
    const { findings } = await run({ readOnly: true }, { allowWrites: true }, 'Advanced')
    expect(checked(findings, 'round trip')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(checked(findings, 'round trip').message).toContain('refused creating our own file: "Permission denied"')
    expect(names(findings)).not.toContain('delete')
  })
  test('an endless listing is counted up to a bound, which is told', async () => {
    const endless = Array.from({ length: 400 }, (_, index) => `file ${index}`)
    const { findings } = await run({ endless }, { folder: 'in', files: { limit: 20_000 } }, 'Advanced')
    expect(checked(findings, 'listing').message).toMatch(/^more than 1000 entries of "\/home" listed in /)
    expect(checked(findings, 'backlog').message).toContain('of those that were looked at: 10000')
  })
  test('a listing whose answers are empty for ever ends', async () => {
    const { findings } = await run({ endless: [] })
    expect(checked(findings, 'listing')).toMatchObject({ level: 'fail', fault: 'protocol' })
  })
  test('names with line breaks and escapes do not reach a terminal', async () => {
    const files = { [`/home/in/a${escapeSequences}\r\nb`]: { bytes: Buffer.from('x'), at: new Date(0) } }
    const { findings } = await run({ files }, { folder: 'in' }, 'Advanced')
    const { message } = checked(findings, 'oldest file')
    expect([...message].every((character) => character >= ' ' && character <= '~')).toBe(true)
    expect(message).toMatch(/"ared.* b", waits/)
  })
  test.each([
    ['starts no SFTP', 'sftp', 'Standard', 'listing'],
    ['opens no folder', 'OPENDIR', 'Standard', 'listing'],
    ['takes no bytes', 'WRITE', 'Advanced', 'round trip'],
  ] as const)('a server that says nothing and %s is a timeout on that check', async (_, deafTo, mode, check) => {
    const { findings } = await run({ deafTo }, { allowWrites: true }, mode, { timeoutMs: 1_500 })
    expect(checked(findings, 'sign-in').level).toBe('ok')
    expect(checked(findings, check)).toMatchObject({ level: 'fail', fault: 'timeout' })
    expect(await settled('')).toBe('')
  })
  test('a server that hangs up when SFTP begins is a fault of protocol', async () => {
    const { findings } = await run({ hangUp: true })
    expect(checked(findings, 'listing')).toMatchObject({ level: 'fail', fault: 'protocol' })
  })
})

describe('sftp against what is no SSH server', () => {
  const probe = (port: number, mode: ExecutionMode = 'Basic', timeoutMs = 3_000) =>
    runKind(sftp, { host, port, username: 'a', password: secret('word'), hostKey: [strange] }, mode, { timeoutMs })
  test('refused: nothing listens', async () => {
    const finding = checked(await probe(await refusedPort()), 'banner')
    expect(finding).toMatchObject({
      level: 'fail',
      fault: 'refused',
      message: expect.stringContaining('nothing listens'),
    })
  })
  test('a sound banner is known without a clock: on a (simulated) busy machine too it is not called a wrong one', async () => {
    await using there = await peer(speaks('SSH-2.0-sound\r\n'))
    // What a regular expression of svc.yaml is run in gives up after a while, however little it has to do.
    const busy = vi.spyOn(process.getBuiltinModule('node:vm'), 'runInNewContext').mockImplementation(() => {
      throw Object.assign(new Error('timed out'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' })
    })
    try {
      expect(checked(await probe(there.port), 'banner')).toMatchObject({ level: 'ok' })
    } finally {
      busy.mockRestore()
    }
  })
  test('black hole: accepted and never answered ends before the deadline, and leaves no socket', async () => {
    await using hole = await peer(blackHole)
    const finding = checked(await probe(hole.port, 'Standard', 500), 'banner')
    expect(finding).toMatchObject({ level: 'fail', fault: 'timeout' })
    expect(finding.message).toContain('accepted the connection and then said nothing for')
    await hungUp(hole)
  })
  test('a server that greets and then says nothing is told as that', async () => {
    await using half = await peer(speaks('SSH-2.0-Half\r\n'))
    const findings = await probe(half.port, 'Standard', 700)
    expect(checked(findings, 'banner').level).toBe('ok')
    expect(checked(findings, 'host key')).toMatchObject({ level: 'fail', fault: 'timeout' })
    await hungUp(half)
  })
  test.each([
    ['an FTP server', speaks('220 Welcome\r\n'), 'timeout', 'said "220 Welcome" and no more'],
    ['an old SSH server', speaks('SSH-1.5-Old\r\n'), 'protocol', 'not version 2 of SSH'],
    ['a server that hangs up', (socket: Socket) => void socket.end(), 'refused', 'hung up before it said anything'],
    ['half a line', (socket: Socket) => void socket.end('SSH-2.'), 'protocol', 'does not answer as SSH does'],
    ['a long talk', speaks('x\r\n'.repeat(10_000)), 'protocol', 'does not answer as SSH does'],
    ['a reset', (socket: Socket) => void socket.resetAndDestroy(), 'protocol', 'closed the connection'],
  ])('%s is a failure that says so', async (_, behave, fault, told) => {
    await using other = await peer(behave)
    const finding = checked(await probe(other.port, 'Basic', 700), 'banner')
    expect(finding).toMatchObject({ level: 'fail', fault, message: expect.stringContaining(told) })
    await hungUp(other)
  })
  test('lines before the banner are allowed (RFC 4253, 4.2), and escapes in it are not passed on', async () => {
    await using chatty = await peer(speaks(`Hello\r\nSSH-2.0-a${escapeSequences}b\r\n`))
    const finding = checked(await probe(chatty.port), 'banner')
    expect(finding.level).toBe('ok')
    expect([...finding.message].every((character) => character >= ' ' && character <= '~')).toBe(true)
  })
  test('100 key exchanges of random bytes are 100 failures, and nothing breaks', async () => {
    for (let round = 0; round < 100; round += 1) {
      const bytes = Buffer.from(Array.from({ length: 200 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
      // A length that is right takes the rest to the parser of the key exchange.
      if (round % 2) bytes.set([0, 0, 0, 196, 4, 20])
      await using other = await peer((socket) => void socket.end(Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), bytes])))
      const findings = await probe(other.port, 'Standard', 1_000)
      expect(checked(findings, 'host key').level).toBe('fail')
    }
  })
})

describe('sftp settings and judgements', () => {
  const settings = (given: Given): SftpSettings => withDefaults(sftp.settings, { host, ...given })
  test.each([
    [{ password: secret('x') }, 'need a username'],
    [{ username: 'a' }, 'username needs a password or a privateKey'],
    [{ username: 'a', password: secret('x'), passphrase: secret('y') }, 'passphrase needs a privateKey'],
    [{ hostKey: ['ssh-ed25519 AAAA'] }, 'hostKey is no fingerprint'],
    [{ hostKey: [`MD5:${'A'.repeat(43)}`] }, 'hostKey is no fingerprint'],
    [{ folder: '/in' }, 'folder needs a username'],
    [{ username: 'a', password: secret('x'), probeFolder: 'a\0b' }, 'probeFolder holds a control character'],
  ] satisfies [Given, string][])('%j cannot be used together', (given, told) => {
    expect(sftp.contradiction?.(settings(given))).toContain(told)
  })
  test('it signs in from Standard on, and only with an account; the target names host and port', () => {
    expect(sftp.signsIn?.(settings({ username: 'a' }), 'Basic')).toBe(false)
    expect(sftp.signsIn?.(settings({ username: 'a' }), 'Standard')).toBe(true)
    expect(sftp.signsIn?.(settings({}), 'Advanced')).toBe(false)
    expect(sftp.target?.(settings({}))).toEqual({ host, port: 22 })
  })
  test('the boundaries of latency belong to the better side', () => {
    const level = (ms: number) => {
      const seen = { see: 'banner', address: 'a:22', ended: 'met', said: '"SSH-2.0-x"', version: '2.0', ms } as const
      const judged = sftp.judge(seen, settings({}))
      return 'level' in judged ? judged.level : 'several'
    }
    expect([1_000, 1_000.1, 3_000, 3_000.1].map(level)).toEqual(['ok', 'warn', 'warn', 'fail'])
  })
  test('a host key that is cut short or hostile is told without harm', () => {
    expect(hostKeyOf(Buffer.alloc(0)).type).toBe('')
    expect(hostKeyOf(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x1b, 0x5b, 0x32, 0x4a])).type).toBe('')
    expect(hostKeyOf(Buffer.alloc(3)).fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/)
  })
})
