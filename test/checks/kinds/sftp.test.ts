import type { Socket } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import sftp, { banner } from '../../../src/core/checks/kinds/sftp/index.ts'
import { hostKeyOf } from '../../../src/core/checks/kinds/sftp/ssh.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { finds } from '../../support/engine/finds.ts'
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
import { escapeSequences, peer, settled, speaks } from '../../support/faults/faults.ts'
import { type SftpOptions, type SftpServer, startSftpServer } from '../../support/servers/sftp-server.ts'
import { hungUp } from '../../support/suite/until.ts'

type SftpSettings = Values<typeof sftp.settings>
type Overrides = Partial<SftpSettings>
const host = '127.0.0.1'
const strange = `SHA256:${'A'.repeat(43)}`

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
    const results = await runKind(sftp, { ...base, ...more }, mode, context)
    await hungUp(server)
    return { results, server }
  }

  test.each(['password', 'keyboard-interactive'] as const)('%s signs in, and is sent once', async (method) => {
    const { results, server } = await run({ method })
    expect(problemsOf(results)).toEqual([])
    expect(server.input()).toEqual([word])
  })
  test.each(['password', 'keyboard-interactive'] as const)(
    'a wrong one by %s is auth, is sent once whatever the retries, and is not shown',
    async (method) => {
      const { results, server } = await run({ method }, { password: secret('hunter2-wrong') }, 'Standard', {
        retries: 5,
      })
      await finds(results, `sign-in failed (auth): …refused the sign-in of "monitor" by ${method}…`)
      expect(server.input()).toEqual(['hunter2-wrong'])
      expect(JSON.stringify(results)).not.toContain('hunter2')
    },
  )
  test('a server whose key is unknown receives neither a password nor a sign-in attempt', async () => {
    for (const hostKey of [undefined, [strange]]) {
      const { results, server } = await run({}, { hostKey })
      expect(checksOf(results)).toEqual(['banner', 'host key'])
      expect(server.input()).toEqual([])
      expect(server.tries()).toBe(0)
    }
  })
  test('a round trip in memory, and the listing of a folder with files', async () => {
    const files = { '/home/in/a.txt': { bytes: Buffer.from('x'), at: new Date(Date.now() - 20 * 60_000) } }
    const { results, server } = await run({ files }, { folder: 'in', allowWrites: true }, 'Advanced')
    expect(checksOf(results)).toEqual(expect.arrayContaining(['round trip', 'rename', 'delete', 'sweep']))
    await finds(results, 'oldest file warning')
    expect(problemsOf(results)).toHaveLength(1)
    expect([...server.files.keys()]).toEqual(['/home/in/a.txt'])
  })
  test.each([
    ['another SHA-256', (bytes: Buffer) => Buffer.from(bytes).fill(0, 100, 164), 'with another SHA-256'],
    ['cut', (bytes: Buffer) => bytes.subarray(0, 60_000), 'as 60000 of 65536 bytes'],
  ])('a file that comes back %s fails the round trip, and is deleted nevertheless', async (_, spoil, message) => {
    const { results, server } = await run({ spoil }, { allowWrites: true }, 'Advanced')
    await finds(results, 'round trip failed (data)')
    expect(checked(results, 'round trip').message).toContain(message)
    await finds(results, 'delete ok')
    expect(server.files.size).toBe(0)
  })
  test('a folder without write permission fails the round trip, with the message of the server', async () => {
    const { results } = await run({ readOnly: true }, { allowWrites: true }, 'Advanced')
    await finds(results, 'round trip failed (data): …refused creating the test file: "Permission denied"…')
    expect(checksOf(results)).not.toContain('delete')
  })
  test('an endless listing is counted up to a limit, which is reported', async () => {
    const endless = Array.from({ length: 400 }, (_, index) => `file ${index}`)
    await finds(
      run({ endless }, { folder: 'in', files: { limit: 20_000 } }, 'Advanced'),
      ['listing', /^more than 1000 entries of "\/home" listed in /],
      'backlog: …files waiting (only the first entries were checked): 10000…',
    )
  })
  test('a listing with endless empty answers ends', () => finds(run({ endless: [] }), 'listing failed (protocol)'))
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
    // Until then a busy machine has signed in.
    const { results } = await run({ deafTo }, { allowWrites: true }, mode, { timeoutMs: 4_000 })
    await finds(results, 'sign-in ok')
    expect(checked(results, check)).toMatchObject({ status: 'failed', fault: 'timeout' })
    expect(await settled('')).toBe('')
  })
  test('a server that hangs up when SFTP begins is a protocol fault', () =>
    finds(run({ hangUp: true }), 'listing failed (protocol)'))
})

describe('sftp against other servers', () => {
  const probe = (port: number, mode: ExecutionMode = 'Basic', timeoutMs = 3_000) =>
    runKind(sftp, { host, port, username: 'a', password: secret('word'), hostKey: [strange] }, mode, { timeoutMs })
  test('a valid banner is accepted without a clock: a (simulated) busy machine does not reject it', async () => {
    await using there = await peer(speaks('SSH-2.0-sound\r\n'))
    // What a regular expression of svc.yaml is run in gives up after a while, however little it has to do.
    const busy = vi.spyOn(process.getBuiltinModule('node:vm'), 'runInNewContext').mockImplementation(() => {
      throw Object.assign(new Error('timed out'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' })
    })
    try {
      await finds(probe(there.port), 'banner ok')
    } finally {
      busy.mockRestore()
    }
  })
  test('a server that greets and then stays silent is reported as such', async () => {
    await using half = await peer(speaks('SSH-2.0-Half\r\n'))
    await finds(probe(half.port, 'Standard', 700), 'banner ok', 'host key failed (timeout)')
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
    await finds(probe(other.port, 'Basic', 700), [
      'banner failed',
      { fault, message: expect.stringContaining(message) },
    ])
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
      await finds(probe(other.port, 'Standard', 1_000), 'host key failed')
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
