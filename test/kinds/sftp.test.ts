import { once } from 'node:events'
import { readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { limits, type Result } from '../../src/core/engine/index.ts'
import { probeFile } from '../../src/core/folders/index.ts'
import sftp, { banner } from '../../src/core/kinds/sftp/index.ts'
import { hostKeyOf } from '../../src/core/kinds/sftp/ssh.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { blackHole, escapeSequences, peer, refusedPort, settled, speaks } from '../support/faults.ts'
import { fillDisk } from '../support/full-disk.ts'
import { sessionsLeft } from '../support/own-daemon.ts'
import { peerSuite } from '../support/peer.ts'
import { proxy } from '../support/proxy.ts'
import { checked, evaluated, type RunKindOptions, runKind, secret, withDefaults } from '../support/run-kind.ts'
import { type SftpOptions, type SftpServer, startSftpServer } from '../support/sftp-server.ts'
import { type Sshd, sshdMissing, startSshd } from '../support/sshd.ts'
import { hungUp } from '../support/until.ts'

type SftpSettings = Values<typeof sftp.settings>
type Overrides = Partial<SftpSettings>
const host = '127.0.0.1'
const names = (results: readonly Result[]): readonly string[] => results.map((result) => result.check)
const bad = (results: readonly Result[]): readonly string[] =>
  results.filter((result) => result.status !== 'ok').map((result) => `${result.check}: ${result.message}`)
const strange = `SHA256:${'A'.repeat(43)}`

peerSuite(sshdMissing, 'sftp against OpenSSH', () => {
  let server: Sshd
  beforeAll(async () => {
    server = await startSshd()
  })
  afterAll(() => server.remove())
  const run = (overrides: Overrides = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      sftp,
      {
        host,
        port: server.port,
        username: server.user,
        privateKey: secret(server.privateKey),
        hostKey: [server.hostKey],
        ...overrides,
      },
      mode,
      options,
    )
  const signedIn = (): number => server.log().match(/Accepted publickey/g)?.length ?? 0

  test('each mode runs its checks, and leaves no session and no file', async () => {
    const writes: Overrides = {
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
    expect(advanced.every((result) => result.address === server.address)).toBe(true)
    expect(readdirSync(server.files)).toEqual([])
    expect(await sessionsLeft(server)).toBe(0)
  })
  test('it reports what it observes', async () => {
    const results = await run()
    const textOf = (check: string): string => checked(results, check).message
    expect(textOf('banner')).toMatch(
      /^127\.0\.0\.1:\d+ sent "SSH-2\.0-OpenSSH_.*" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
    )
    expect(textOf('host key')).toBe(`${server.address} presented ssh-ed25519 ${server.hostKey}`)
    expect(textOf('sign-in')).toMatch(new RegExp(`^signed in to .* as "${server.user}" in [\\d.]+ m?s`))
    expect(textOf('listing')).toMatch(/^(?:more than )?\d+ entr(?:y|ies) of "\/.*" listed in /)
  })
  test('a full disk fails the round trip, and the message names the likely cause', async (context) => {
    if (process.getuid?.() !== 0) return context.skip('mounting needs root')
    const disk = fillDisk(server.files)
    try {
      const results = await run({ allowWrites: true, probeFolder: server.files }, 'Advanced')
      expect(checked(results, 'round trip')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'round trip').message).toMatch(/"Failure": often a full disk or quota$/)
    } finally {
      disk.free()
    }
  })
  test('files whose names begin with a dot do not wait in a drop folder', async () => {
    const path = join(server.files, '.bashrc')
    writeFileSync(path, 'x')
    utimesSync(path, 1_000, 1_000)
    try {
      const result = checked(await run({ folder: server.files }, 'Advanced'), 'oldest file')
      expect(result).toMatchObject({ status: 'ok', message: expect.stringContaining('no file is waiting') })
      const dotFile = checked(await run({ folder: server.files, ending: '.bashrc' }, 'Advanced'), 'oldest file')
      expect(dotFile).toMatchObject({ status: 'failed', fault: 'threshold' })
    } finally {
      rmSync(path)
    }
  })
  test('an account that may do nothing but SFTP passes all checks', async () => {
    const limited = await startSshd(['ForceCommand internal-sftp', 'PermitTTY no', 'DisableForwarding yes'])
    try {
      const credentials = { username: limited.user, privateKey: secret(limited.privateKey), hostKey: [limited.hostKey] }
      const folders = { folder: limited.files, allowWrites: true, probeFolder: limited.files }
      const results = await runKind(sftp, { host, port: limited.port, ...credentials, ...folders }, 'Advanced')
      expect(bad(results)).toEqual([])
    } finally {
      await limited.remove()
    }
  })
  test('a server with too many sign-ins in progress is reported as such, and not as another service', async () => {
    const busy = await startSshd(['MaxStartups 1:100:1'])
    const first = connect(busy.port, host)
    try {
      await once(first, 'data')
      const result = checked(await runKind(sftp, { host, port: busy.port }, 'Basic'), 'banner')
      expect(result).toMatchObject({ status: 'failed', fault: 'refused' })
      expect(result.message).toContain('it sent "Exceeded MaxStartups"')
    } finally {
      first.destroy()
      await busy.remove()
    }
  })
  test('without an account, the server must prove that it owns the expected key, and nobody signs in', async () => {
    const before = server.log().length
    const results = await runKind(sftp, { host, port: server.port, hostKey: [server.hostKey] }, 'Standard')
    expect(bad(results)).toEqual([])
    expect(names(results)).toEqual(['banner', 'host key'])
    const other = await runKind(sftp, { host, port: server.port, hostKey: [strange] }, 'Standard')
    expect(checked(other, 'host key')).toMatchObject({ status: 'failed', fault: 'tls' })
    expect(await sessionsLeft(server)).toBe(0)
    expect(server.log().slice(before)).not.toContain('Accepted')
  })
  test('the software of the server and the fingerprint of its key are details', async () => {
    const results = await run()
    expect(checked(results, 'banner').facts).toEqual({ version: expect.stringMatching(/^OpenSSH_\d/) })
    expect(checked(results, 'host key').facts).toEqual({ hostKey: server.hostKey })
  })
  test('4 MiB come back the same, in many concurrent requests', async () => {
    const overrides: Overrides = { allowWrites: true, probeFolder: server.files, probeSize: 4 * 1024 * 1024 }
    const results = await run(overrides, 'Advanced')
    expect(bad(results)).toEqual([])
    expect(checked(results, 'round trip').message).toContain('4 MiB written in')
    expect(readdirSync(server.files)).toEqual([])
  })
  test('a key under a passphrase, and one without its final newline, sign in', async () => {
    const locked = { privateKey: secret(server.lockedKey), passphrase: secret('correct horse') }
    expect(bad(await run(locked))).toEqual([])
    expect(bad(await run({ privateKey: secret(server.privateKey.trimEnd()) }))).toEqual([])
  })
  test.each([
    ['a wrong passphrase', 'locked', 'battery staple', 'its passphrase is missing or wrong'],
    ['no passphrase', 'locked', undefined, 'its passphrase is missing or wrong'],
    ['no key at all', 'battery staple', undefined, 'it is not a private key'],
  ])('%s is reported before any connection, and not shown', async (_, which, passphrase, message) => {
    const overrides: Overrides = {
      privateKey: secret(which === 'locked' ? server.lockedKey : which),
      ...(passphrase === undefined ? {} : { passphrase: secret(passphrase) }),
    }
    const results = await run(overrides)
    expect(results).toHaveLength(1)
    expect(results[0]).toMatchObject({ check: 'sign-in', status: 'failed', fault: 'internal' })
    expect(results[0]?.message).toContain(message)
    expect(JSON.stringify(results)).not.toContain('battery')
  })
  test('a key that is not accepted is auth, and is not tried again soon', async () => {
    const shared = limits()
    const stranger = { privateKey: secret(server.strangerKey) }
    const results = await run(stranger, 'Standard', { limits: shared, retries: 3 })
    expect(checked(results, 'host key').status).toBe('ok')
    expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(checked(results, 'sign-in').message).toBe(
      `${server.address} refused the sign-in of "${server.user}" by publickey`,
    )
    const again = await run(stranger, 'Standard', { limits: shared })
    expect(again).toHaveLength(1)
    expect(again[0]?.message).toContain('not signed in')
  })
  test('a password where only keys are accepted is reported as such', async () => {
    const results = await run({ privateKey: undefined, password: secret('correct horse') })
    expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(checked(results, 'sign-in').message).toContain(': it offers none of the configured methods')
  })
  test('without hostKey there is no sign-in, and the observed key is reported', async () => {
    const before = signedIn()
    const results = await run({ hostKey: undefined })
    expect(names(results)).toEqual(['banner', 'host key'])
    expect(checked(results, 'host key')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(checked(results, 'host key').message).toContain(
      `presented ssh-ed25519 ${server.hostKey}, but hostKey is not set`,
    )
    expect(await sessionsLeft(server)).toBe(0)
    expect(signedIn()).toBe(before)
  })
  test('with another hostKey there is no sign-in, and the keys to compare are reported', async () => {
    const before = signedIn()
    const results = await run({ hostKey: [strange] })
    expect(names(results)).toEqual(['banner', 'host key'])
    expect(checked(results, 'host key')).toMatchObject({ status: 'failed', fault: 'tls' })
    expect(checked(results, 'host key').message).toContain('which is not in hostKey')
    expect(checked(results, 'host key').details?.join()).toContain('ssh-keygen -lf')
    expect(await sessionsLeft(server)).toBe(0)
    expect(signedIn()).toBe(before)
  })
  test('one of several hostKeys is enough, with or without the padding of base64', async () => {
    expect(bad(await run({ hostKey: [strange, `${server.hostKey}=`] }))).toEqual([])
  })
  test('without an account the host key is reported, and ok', async () => {
    const results = await run({ username: undefined, privateKey: undefined, hostKey: undefined })
    expect(bad(results)).toEqual([])
    expect(names(results)).toEqual(['banner', 'host key'])
    const anonymous = await run({ username: undefined, privateKey: undefined })
    expect(bad(anonymous)).toEqual([])
  })
  test('the date of the oldest file in the drop folder is found, without folders and other extensions', async () => {
    const now = Date.now()
    const write = (name: string, minutes: number): void => {
      writeFileSync(join(server.files, name), 'x')
      utimesSync(join(server.files, name), new Date(), new Date(now - minutes * 60_000))
    }
    write('a.xml', 20)
    write('b.xml', 90)
    write('old.txt', 600)
    const results = await run({ folder: server.files, ending: '.xml', files: { limit: 1 } }, 'Advanced')
    const oldest = checked(results, 'oldest file')
    expect(oldest).toMatchObject({ status: 'failed', fault: 'threshold', measurement: { limit: 3_600_000 } })
    expect(oldest.message).toMatch(/"b\.xml", has waited 1\.5 h \(warn 15 min, fail 1 h\)$/)
    expect(checked(results, 'backlog')).toMatchObject({ status: 'failed', measurement: { value: 2 } })
    const { rmSync } = await import('node:fs')
    for (const name of ['a.xml', 'b.xml', 'old.txt']) rmSync(join(server.files, name))
  })
  test('only leftovers of svc are swept', async () => {
    const old = probeFile(1, new Date(Date.now() - 2 * 3_600_000))
    const young = probeFile(1, new Date())
    const others = [young.name, 'report.xml']
    for (const name of [old.name, old.renamed, ...others]) writeFileSync(join(server.files, name), 'x')
    const results = await run({ allowWrites: true, probeFolder: server.files }, 'Advanced')
    expect(checked(results, 'sweep').message).toBe('2 of 2 leftovers of earlier round trips deleted')
    expect(readdirSync(server.files).sort()).toEqual([...others].sort())
    const { rmSync } = await import('node:fs')
    for (const name of others) rmSync(join(server.files, name))
  })
  test('a missing drop folder fails its check, and the round trip continues', async () => {
    const overrides: Overrides = { folder: '/gone/for/good', allowWrites: true, probeFolder: server.files }
    const results = await run(overrides, 'Advanced')
    expect(checked(results, 'oldest file')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(checked(results, 'oldest file').message).toMatch(/refused opening "\/gone\/for\/good": "No such file/)
    expect(checked(results, 'round trip').status).toBe('ok')
  })
  test('a server without SFTP is distinguished from a refused sign-in', async () => {
    const without = await startSshd(['ForceCommand false'])
    try {
      const results = await run({
        port: without.port,
        hostKey: [without.hostKey],
        privateKey: secret(without.privateKey),
      })
      expect(checked(results, 'sign-in').status).toBe('ok')
      expect(checked(results, 'listing')).toMatchObject({ status: 'failed' })
      expect(checked(results, 'listing').fault).not.toBe('auth')
    } finally {
      await without.remove()
    }
  })
  test('slow: answers that are each 150 ms late exceed the threshold, with the value', async () => {
    await using slow = await proxy(server.port, 150)
    const results = await run({ port: slow.port, latency: { warn: 50, limit: 120 } })
    for (const check of ['banner', 'sign-in', 'listing']) {
      expect(checked(results, check)).toMatchObject({
        status: 'failed',
        fault: 'threshold',
        measurement: { limit: 120 },
      })
      expect(checked(results, check).measurement?.value).toBeGreaterThan(140)
    }
  })
})

describe('sftp with passwords', () => {
  const word = 'correct horse'
  const run = async (
    options: SftpOptions,
    overrides: Overrides | ((server: SftpServer) => Overrides) = {},
    mode: ExecutionMode = 'Standard',
    context: RunKindOptions = {},
  ) => {
    await using server = await startSftpServer(options)
    const more = typeof overrides === 'function' ? overrides(server) : overrides
    const base = { host, port: server.port, username: 'monitor', password: secret(word), hostKey: [server.hostKey] }
    const results = await runKind(sftp, { ...base, ...more }, mode, { timeoutMs: 6_000, ...context })
    await hungUp(server)
    return { results, server }
  }

  test.each(['password', 'keyboard-interactive'] as const)('%s signs in, and is sent once', async (method) => {
    const { results, server } = await run({ method })
    expect(bad(results)).toEqual([])
    expect(server.input()).toEqual([word])
  })
  test.each(['password', 'keyboard-interactive'] as const)(
    'a wrong one by %s is auth, is sent once whatever the retries, and is not shown',
    async (method) => {
      const { results, server } = await run({ method }, { password: secret('hunter2-wrong') }, 'Standard', {
        retries: 5,
      })
      expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(checked(results, 'sign-in').message).toContain(`refused the sign-in of "monitor" by ${method}`)
      expect(server.input()).toEqual(['hunter2-wrong'])
      expect(JSON.stringify(results)).not.toContain('hunter2')
    },
  )
  test('a server whose key is unknown receives neither a password nor a sign-in attempt', async () => {
    for (const hostKey of [undefined, [strange]]) {
      const { results, server } = await run({}, { hostKey })
      expect(names(results)).toEqual(['banner', 'host key'])
      expect(server.input()).toEqual([])
      expect(server.tries()).toBe(0)
    }
  })
  test('a round trip in memory, and the listing of a folder with files', async () => {
    const files = { '/home/in/a.txt': { bytes: Buffer.from('x'), at: new Date(Date.now() - 20 * 60_000) } }
    const { results, server } = await run({ files }, { folder: 'in', allowWrites: true }, 'Advanced')
    expect(names(results)).toEqual(expect.arrayContaining(['round trip', 'rename', 'delete', 'sweep']))
    expect(checked(results, 'oldest file')).toMatchObject({ status: 'warning' })
    expect(bad(results)).toHaveLength(1)
    expect([...server.files.keys()]).toEqual(['/home/in/a.txt'])
  })
  test.each([
    ['another SHA-256', (bytes: Buffer) => Buffer.from(bytes).fill(0, 100, 164), 'with another SHA-256'],
    ['cut', (bytes: Buffer) => bytes.subarray(0, 60_000), 'as 60000 of 65536 bytes'],
  ])('a file that comes back %s fails the round trip, and is deleted nevertheless', async (_, spoil, message) => {
    const { results, server } = await run({ spoil }, { allowWrites: true }, 'Advanced')
    expect(checked(results, 'round trip')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(checked(results, 'round trip').message).toContain(message)
    expect(checked(results, 'delete').status).toBe('ok')
    expect(server.files.size).toBe(0)
  })
  test('a folder without write permission fails the round trip, with the message of the server', async () => {
    const { results } = await run({ readOnly: true }, { allowWrites: true }, 'Advanced')
    expect(checked(results, 'round trip')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(checked(results, 'round trip').message).toContain('refused creating the test file: "Permission denied"')
    expect(names(results)).not.toContain('delete')
  })
  test('an endless listing is counted up to a limit, which is reported', async () => {
    const endless = Array.from({ length: 400 }, (_, index) => `file ${index}`)
    const { results } = await run({ endless }, { folder: 'in', files: { limit: 20_000 } }, 'Advanced')
    expect(checked(results, 'listing').message).toMatch(/^more than 1000 entries of "\/home" listed in /)
    expect(checked(results, 'backlog').message).toContain('files waiting (only the first entries were checked): 10000')
  })
  test('a listing with endless empty answers ends', async () => {
    const { results } = await run({ endless: [] })
    expect(checked(results, 'listing')).toMatchObject({ status: 'failed', fault: 'protocol' })
  })
  test('names with line breaks and escapes do not reach a terminal', async () => {
    const files = { [`/home/in/a${escapeSequences}\r\nb`]: { bytes: Buffer.from('x'), at: new Date(0) } }
    const { results } = await run({ files }, { folder: 'in' }, 'Advanced')
    const { message } = checked(results, 'oldest file')
    expect([...message].every((character) => character >= ' ' && character <= '~')).toBe(true)
    expect(message).toMatch(/"ared.* b", has waited/)
  })
  test.each([
    ['starts no SFTP', 'sftp', 'Standard', 'listing'],
    ['opens no folder', 'OPENDIR', 'Standard', 'listing'],
    ['takes no bytes', 'WRITE', 'Advanced', 'round trip'],
  ] as const)('a server that is silent and %s is a timeout on that check', async (_, deafTo, mode, check) => {
    const { results } = await run({ deafTo }, { allowWrites: true }, mode, { timeoutMs: 1_500 })
    expect(checked(results, 'sign-in').status).toBe('ok')
    expect(checked(results, check)).toMatchObject({ status: 'failed', fault: 'timeout' })
    expect(await settled('')).toBe('')
  })
  test('a server that hangs up when SFTP begins is a protocol fault', async () => {
    const { results } = await run({ hangUp: true })
    expect(checked(results, 'listing')).toMatchObject({ status: 'failed', fault: 'protocol' })
  })
})

describe('sftp against other servers', () => {
  const probe = (port: number, mode: ExecutionMode = 'Basic', timeoutMs = 3_000) =>
    runKind(sftp, { host, port, username: 'a', password: secret('word'), hostKey: [strange] }, mode, { timeoutMs })
  test('refused: nothing listens', async () => {
    const result = checked(await probe(await refusedPort()), 'banner')
    expect(result).toMatchObject({
      status: 'failed',
      fault: 'refused',
      message: expect.stringContaining('nothing listens'),
    })
  })
  test('a valid banner is accepted without a clock: a (simulated) busy machine does not reject it', async () => {
    await using there = await peer(speaks('SSH-2.0-sound\r\n'))
    // What a regular expression of svc.yaml is run in gives up after a while, however little it has to do.
    const busy = vi.spyOn(process.getBuiltinModule('node:vm'), 'runInNewContext').mockImplementation(() => {
      throw Object.assign(new Error('timed out'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' })
    })
    try {
      expect(checked(await probe(there.port), 'banner')).toMatchObject({ status: 'ok' })
    } finally {
      busy.mockRestore()
    }
  })
  test('black hole: accepted and never answered ends before the deadline, and leaves no socket', async () => {
    await using hole = await peer(blackHole)
    const result = checked(await probe(hole.port, 'Standard', 500), 'banner')
    expect(result).toMatchObject({ status: 'failed', fault: 'timeout' })
    expect(result.message).toContain('accepted the connection but sent nothing for')
    await hungUp(hole)
  })
  test('a server that greets and then stays silent is reported as such', async () => {
    await using half = await peer(speaks('SSH-2.0-Half\r\n'))
    const results = await probe(half.port, 'Standard', 700)
    expect(checked(results, 'banner').status).toBe('ok')
    expect(checked(results, 'host key')).toMatchObject({ status: 'failed', fault: 'timeout' })
    await hungUp(half)
  })
  test.each([
    ['an FTP server', speaks('220 Welcome\r\n'), 'timeout', 'sent "220 Welcome" and nothing more'],
    ['an old SSH server', speaks('SSH-1.5-Old\r\n'), 'protocol', 'not SSH version 2'],
    [
      'a server that hangs up',
      (socket: Socket) => void socket.end(),
      'refused',
      'closed the connection before sending anything',
    ],
    ['half a line', (socket: Socket) => void socket.end('SSH-2.'), 'protocol', 'does not speak SSH'],
    ['a long talk', speaks('x\r\n'.repeat(10_000)), 'protocol', 'does not speak SSH'],
    ['a reset', (socket: Socket) => void socket.resetAndDestroy(), 'protocol', 'closed the connection'],
  ])('%s is a failure that says so', async (_, behave, fault, message) => {
    await using other = await peer(behave)
    const result = checked(await probe(other.port, 'Basic', 700), 'banner')
    expect(result).toMatchObject({ status: 'failed', fault, message: expect.stringContaining(message) })
    await hungUp(other)
  })
  test('lines before the banner are allowed (RFC 4253, 4.2), and escapes in it are not passed on', async () => {
    await using chatty = await peer(speaks(`Hello\r\nSSH-2.0-a${escapeSequences}b\r\n`))
    const result = checked(await probe(chatty.port), 'banner')
    expect(result.status).toBe('ok')
    expect([...result.message].every((character) => character >= ' ' && character <= '~')).toBe(true)
  })
  test('100 key exchanges of random bytes are 100 failures, and nothing breaks', async () => {
    for (let round = 0; round < 100; round += 1) {
      const bytes = Buffer.from(Array.from({ length: 200 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
      // A length that is right takes the rest to the parser of the key exchange.
      if (round % 2) bytes.set([0, 0, 0, 196, 4, 20])
      await using other = await peer((socket) => void socket.end(Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), bytes])))
      const results = await probe(other.port, 'Standard', 1_000)
      expect(checked(results, 'host key').status).toBe('failed')
    }
  })
})

describe('sftp settings and evaluation', () => {
  const settings = (overrides: Overrides): SftpSettings => withDefaults(sftp.settings, { host, ...overrides })
  test.each([
    [{ password: secret('x') }, 'require a username'],
    [{ username: 'a' }, 'username requires a password or a privateKey'],
    [{ username: 'a', password: secret('x'), passphrase: secret('y') }, 'passphrase requires a privateKey'],
    [{ hostKey: ['ssh-ed25519 AAAA'] }, 'hostKey is not a fingerprint'],
    [{ hostKey: [`MD5:${'A'.repeat(43)}`] }, 'hostKey is not a fingerprint'],
    [{ folder: '/in' }, 'folder needs a username'],
    [{ username: 'a', password: secret('x'), probeFolder: 'a\0b' }, 'probeFolder holds a control character'],
  ] satisfies [Overrides, string][])('%j cannot be used together', (overrides, message) => {
    expect(sftp.validate?.(settings(overrides))).toContain(message)
  })
  test('it signs in from Standard on, and only with an account; the target is host and port', () => {
    expect(sftp.signsIn?.(settings({ username: 'a' }), 'Basic')).toBeUndefined()
    expect(sftp.signsIn?.(settings({ username: 'a' }), 'Standard')).toBeDefined()
    expect(sftp.signsIn?.(settings({}), 'Advanced')).toBeUndefined()
    expect(sftp.target?.(settings({}))).toEqual({ host, port: 22 })
  })
  test('values at the boundaries of latency are ok', () => {
    const greeting = { address: 'a:22', ended: 'met', banner: '"SSH-2.0-x"', version: '2.0', software: 'x' } as const
    const status = (ms: number) => evaluated(banner, { ...greeting, ms }).map((result) => result.status)
    expect([1_000, 1_000.1, 3_000, 3_000.1].flatMap(status)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
  test('a truncated or hostile host key is reported safely', () => {
    expect(hostKeyOf(Buffer.alloc(0)).type).toBe('')
    expect(hostKeyOf(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x1b, 0x5b, 0x32, 0x4a])).type).toBe('')
    expect(hostKeyOf(Buffer.alloc(3)).fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/)
  })
})
