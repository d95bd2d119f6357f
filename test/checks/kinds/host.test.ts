import { execFileSync } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { question, readAnswer } from '../../../src/core/base/net/sntp.ts'
import { parseHostPort } from '../../../src/core/base/net/url.ts'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { type Disk, disks, fromListing, type SilentDisk } from '../../../src/core/base/system/disks.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import host, {
  clock as clockCheck,
  cpu,
  fileDescriptors,
  inodes,
  load,
  memory,
  restarted,
  space,
} from '../../../src/core/checks/kinds/host.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, evaluated, runKind } from '../../support/engine/run-kind.ts'
import { resultsWithoutDescriptors } from '../../support/faults/exhausted.ts'
import { lastsAtLeast } from '../../support/suite/deadline.ts'
import { until } from '../../support/suite/until.ts'

const GiB = 2 ** 30
const clock = (port: number) => ({ reference: `127.0.0.1:${port}`, offset: { warn: 50, limit: 1_000 } })

describe('thresholds', () => {
  const mount = '/data'
  const disk = (percent: number, inodes?: number): { readonly mount: string; readonly disk: Disk } => ({
    mount,
    disk: {
      mount,
      type: 'ext4',
      total: 120 * GiB,
      available: (percent / 100) * 120 * GiB,
      inodes: inodes === undefined ? undefined : { total: 1000, free: inodes },
    },
  })

  test.each([
    [41, 'ok', '41 % free of 120 GiB (warn below 20 %, fail below 10 %)'],
    [20, 'ok', '20 % free of 120 GiB (warn below 20 %, fail below 10 %)'],
    [19.9, 'warning', '19.9 % free of 120 GiB (warn below 20 %, fail below 10 %)'],
    [10, 'warning', '10 % free of 120 GiB (warn below 20 %, fail below 10 %)'],
    [9.96, 'failed', '9.9 % free of 120 GiB (warn below 20 %, fail below 10 %)'],
    [0, 'failed', '0 % free of 120 GiB (warn below 20 %, fail below 10 %)'],
  ])('a disk that is %s %% free: %s', (percent, status, message) => {
    const [result] = evaluated(space, disk(percent))
    expect(result).toMatchObject({ check: 'disk /data', status, message, measurement: { unit: 'percent', limit: 10 } })
    expect(result?.fault).toBe(status === 'failed' ? 'threshold' : undefined)
  })

  test('too few inodes are a warning, nearly none a failure, and a file system without a fixed number has no check', () => {
    expect(evaluated(inodes, disk(50, 100))[0]).toMatchObject({ check: 'inodes /data', status: 'ok' })
    expectResult(evaluated(inodes, disk(50, 99))[0], 'warning: 9.9 % free of 1000 (warn below 10 %, fail below 2 %)')
    expect(evaluated(inodes, disk(50, 19))[0]).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(evaluated(space, disk(50))).toHaveLength(1)
    expect(evaluated(inodes, disk(50))).toEqual([])
  })

  test('a file system that does not answer is a failure', () => {
    const error = Object.assign(new Error('EIO: i/o error, statfs'), { code: 'EIO' })
    expect(evaluated(space, { mount, disk: { mount, error } })).toMatchObject([
      { check: 'disk /data', status: 'failed', message: 'the file system is on a disk that reports an error' },
    ])
  })

  test('little memory is a warning, unless a limit makes it a failure', () => {
    const little = { total: 1000, available: 99 }
    expect(evaluated(memory, little)).toMatchObject([
      { status: 'warning', message: '9.9 % available of 1000 B (warn below 10 %)' },
    ])
    expect(evaluated(memory, { total: 1000, available: 100 })).toMatchObject([{ status: 'ok' }])
    expect(evaluated(memory, little, { memory: { limit: 10 } })).toMatchObject([
      { status: 'failed', fault: 'threshold' },
    ])
  })

  test.each([
    [80, 'ok'],
    [80.1, 'warning'],
    [100, 'warning'],
  ])('%s %% CPU: %s', (percent, status) => {
    expect(evaluated(cpu, { percent, ms: 500 })).toMatchObject([{ check: 'cpu', status }])
  })

  test('M16 CPU and load fail beyond a limit that somebody wrote', () => {
    expect(evaluated(cpu, { percent: 100, ms: 500 }, { cpu: { warn: 50, limit: 90 } })).toMatchObject([
      { status: 'failed', message: 'CPU use 100 % over 500 ms (warn 50 %, fail 90 %)' },
    ])
    expect(evaluated(load, { load: 40, processors: 2 }, { load: { limit: 3 } })).toMatchObject([{ status: 'failed' }])
  })

  test('load is evaluated per processor', () => {
    expect(evaluated(load, { load: 8, processors: 4 })).toMatchObject([{ status: 'ok', measurement: { value: 2 } }])
    expect(evaluated(load, { load: 8.1, processors: 4 })).toMatchObject([{ status: 'warning' }])
  })

  test.each([
    [50, 'ok', 'behind 127.0.0.1:1 by 50 ms (warn 50 ms, fail 1 s)'],
    [-51, 'warning', 'ahead of 127.0.0.1:1 by 51 ms (warn 50 ms, fail 1 s)'],
    [1_000, 'warning', 'behind 127.0.0.1:1 by 1 s (warn 50 ms, fail 1 s)'],
    [-1_001, 'failed', 'ahead of 127.0.0.1:1 by 1 s (warn 50 ms, fail 1 s)'],
  ])('a clock that is %s ms off: %s', (offset, status, message) => {
    const reading = { offset, roundTrip: 2, address: '127.0.0.1:1' }
    expect(evaluated(clockCheck, reading, { clock: clock(1) })).toMatchObject([{ check: 'clock', status, message }])
  })

  test.each([
    [70, 'ok'],
    [71, 'warning'],
    [91, 'failed'],
  ])('%s %% of the file descriptors: %s', (open, status) => {
    expect(evaluated(fileDescriptors, { open, max: 100 })).toMatchObject([{ check: 'file descriptors', status }])
  })

  test('a machine that started less than ten minutes ago is a warning', () => {
    expect(evaluated(restarted, 599_999)).toMatchObject([{ check: 'restarted', status: 'warning' }])
    expect(evaluated(restarted, 600_000)).toMatchObject([{ status: 'ok' }])
  })
})

describe('this machine', () => {
  test('Basic reports the uptime only', async () => {
    const results = await runKind(host, {}, 'Basic')
    expect(results.map((result) => result.check)).toEqual(['uptime'])
    expect(results[0]).toMatchObject({ status: 'ok', message: expect.stringMatching(/^up [\d.]+ (s|min|h|d)$/) })
  })

  test('Standard reports disks, memory, load and CPU, over at least 500 ms', async () => {
    const results = await lastsAtLeast(499, () => runKind(host, {}, 'Standard'))
    expect(results.map((result) => result.check)).toEqual(
      expect.arrayContaining(['uptime', 'disk /', 'inodes /', 'memory', 'load', 'cpu']),
    )
    expect(results.map((result) => result.check)).not.toContain('clock')
    await finds(results, ['cpu', /^CPU use [\d.]+ % over [\d.]+ m?s/])
    const names = results.map((result) => result.check)
    expect(new Set(names).size).toBe(names.length)
  })

  test('Advanced adds file descriptors and the last restart', () =>
    finds(
      runKind(host, {}, 'Advanced'),
      ['file descriptors', /^\d+ open of (\d+|an unlimited number): [\d.]+ %/],
      ['restarted', /^up /],
    ))

  test('free space equals what df reports as available', async () => {
    const results: (Disk | SilentDisk)[] = []
    for await (const disk of disks()) results.push(disk)
    const root = results.find((disk) => disk.mount === '/')
    const [, line = ''] = execFileSync('df', ['-P', '-k', '/'], { encoding: 'utf8' }).split('\n')
    const [, size, , available] = line.split(/\s+/).map(Number)
    expect(root).toMatchObject({ total: (size ?? 0) * 1024 })
    const difference = Math.abs((root && 'available' in root ? root.available : 0) - (available ?? 0) * 1024)
    expect(difference).toBeLessThan(GiB / 4)
  })

  test('disks restricts the check, and one that is not mounted is a failure', async () => {
    const results = await runKind(host, { disks: ['/', '/nowhere'] }, 'Standard')
    const names = results.map((result) => result.check).filter((check) => check.startsWith('disk'))
    expect(names).toEqual(['disk /', 'disk /nowhere'])
    await finds(results, 'disk /nowhere failed (data): no file system is mounted there')
  })

  test('skipDisks omits disks', async () => {
    const results = await runKind(host, { skipDisks: ['/'] }, 'Standard')
    expect(results.map((result) => result.check)).not.toContain('disk /')
  })

  test('the deadline keeps earlier results', async () => {
    const results = await runKind(host, {}, 'Standard', { timeoutMs: 400 })
    expect(checked(results, 'memory').status).not.toBe('failed')
    await finds(results, 'cpu failed (timeout)')
  })
})

test('without file descriptors, no check of this machine is silent, and none that cannot look is ok', () => {
  const results = resultsWithoutDescriptors('host', {}, 'Advanced')
  const result = (check: string) => results.find((one) => one.check === check || one.check.startsWith(`${check} `))
  for (const check of ['disk', 'memory', 'cpu', 'load', 'file descriptors', 'OOM kills'])
    expect(result(check), check).toMatchObject({ status: 'failed' })
  expect(result('cpu')).toMatchObject({ notChecked: 'missing' })
})

test('a machine without a local file system says so, and is not checked where no file system is listed', () => {
  expect(evaluated(space, { mount: '/', disk: 'not local' })).toMatchObject([
    { check: 'disk /', status: 'ok', message: expect.stringContaining('no local file system') },
  ])
  for (const platform of ['darwin', 'win32'] as const) expect(() => fromListing([], platform)).toThrow('no file system')
})

describe('the disk listings of other systems', () => {
  const row = { type: 'APFS', size: 500, available: 100, rw: true }

  test('macOS: the data volume represents the sealed system, and network volumes are omitted', () => {
    const results = fromListing(
      [
        { ...row, fs: '/dev/disk3s1s1', mount: '/', rw: false },
        { ...row, fs: '/dev/disk3s5', mount: '/System/Volumes/Data' },
        { ...row, fs: '/dev/disk3s6', mount: '/System/Volumes/VM' },
        { ...row, fs: '/dev/disk4s1', mount: '/Volumes/Media' },
        { ...row, fs: '//guest@nas/share', type: 'smbfs', mount: '/Volumes/share' },
        { ...row, fs: 'nas:/export', type: 'NFS', mount: '/Volumes/export' },
      ],
      'darwin',
    )
    expect(results.map((disk) => disk.mount)).toEqual(['/System/Volumes/Data', '/Volumes/Media'])
    expect(results[0]).toEqual({ mount: '/System/Volumes/Data', type: 'APFS', total: 500, available: 100 })
  })

  test('Windows: drives by letter, without empty card readers and optical disks', () => {
    const results = fromListing(
      [
        { ...row, fs: 'C:', type: 'NTFS', mount: 'C:' },
        { ...row, fs: 'D:', type: 'CDFS', mount: 'D:', rw: false },
        { ...row, fs: 'E:', type: '', mount: 'E:', size: 0 },
      ],
      'win32',
    )
    expect(results.map((disk) => disk.mount)).toEqual(['C:'])
  })
})

/** NTP time of a moment, in its 64 bits. */
function ntp(packet: Buffer, at: number, ms: number): void {
  const seconds = ms / 1_000 + 2_208_988_800
  packet.writeUInt32BE(Math.floor(seconds) % 2 ** 32, at)
  packet.writeUInt32BE(Math.floor((seconds % 1) * 2 ** 32), at + 4)
}

/** The answer of a time server whose clock is `ahead` milliseconds ahead of ours. */
function answerTo(request: Buffer, ahead: number, at = Date.now()): Buffer {
  const packet = Buffer.alloc(48)
  packet[0] = 0b00_100_100
  packet[1] = 2
  request.copy(packet, 24, 40, 48)
  ntp(packet, 32, at + ahead)
  ntp(packet, 40, at + ahead)
  return packet
}

describe('the time server', () => {
  const open: Socket[] = []
  afterEach(() => {
    for (const socket of open.splice(0)) socket.close()
  })

  /** A real UDP time server on a free port of the loopback. */
  async function timeServer(answers: (request: Buffer, count: number) => readonly Buffer[]): Promise<number> {
    const socket = createSocket('udp4')
    open.push(socket)
    let count = 0
    socket.on('message', (request, from) => {
      count += 1
      for (const answer of answers(request, count)) socket.send(answer, from.port, from.address)
    })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return socket.address().port
  }
  const look = async (port: number, more: { readonly timeoutMs?: number } = {}): Promise<Result> =>
    checked(await runKind(host, { clock: clock(port), disks: ['/'] }, 'Standard', more), 'clock')

  test('that agrees is ok, and its address is reported', async () => {
    const port = await timeServer((request) => [answerTo(request, 0)])
    expectResult(await look(port), 'ok', { address: `127.0.0.1:${port}`, measurement: { unit: 'milliseconds' } })
  })

  test('that is 400 ms ahead is a warning, 5 s behind a failure', async () => {
    const ahead = await look(await timeServer((request) => [answerTo(request, 400)]))
    expect(ahead).toMatchObject({ status: 'warning', message: expect.stringContaining('behind 127.0.0.1:') })
    expect(ahead.measurement?.value).toBeGreaterThan(350)
    const behind = await look(await timeServer((request) => [answerTo(request, -5_000)]))
    expect(behind).toMatchObject({ status: 'failed', fault: 'threshold', message: expect.stringContaining('ahead of') })
  })

  test('gets the request again when a packet is lost', async () => {
    const requests: string[] = []
    const port = await timeServer((packet, count) => {
      requests.push(packet.toString('hex', 40, 48))
      return count === 1 ? [] : [answerTo(packet, 0)]
    })
    expect(await look(port)).toMatchObject({ status: 'ok' })
    expect(new Set(requests).size).toBe(2)
  })

  test('cannot be impersonated by an unsolicited answer', async () => {
    const port = await timeServer((request) => [answerTo(Buffer.alloc(48), 9_000_000), answerTo(request, 0)])
    expect(await look(port)).toMatchObject({ status: 'ok' })
  })

  test('that never answers fails the clock and nothing else', async () => {
    const port = await timeServer(() => [])
    const results = await runKind(host, { clock: clock(port) }, 'Standard')
    await finds(results, `clock failed (timeout): 127.0.0.1:${port} did not answer within 3 s`)
    expect(checked(results, 'cpu').status).not.toBe('failed')
  })

  test('where nothing listens is refused at once', async () => {
    const socket = createSocket('udp4').bind(0, '127.0.0.1')
    await once(socket, 'listening')
    const { port } = socket.address()
    socket.close()
    expect(await look(port)).toMatchObject({ status: 'failed', fault: 'refused' })
  })

  test('is abandoned at the deadline, without a socket or a timer', async () => {
    const port = await timeServer(() => [])
    const resourceCount = (kind: RegExp): number =>
      process.getActiveResourcesInfo().filter((one) => kind.test(one)).length
    // A timer of the test runner itself may still be running out.
    await pause(150)
    const before = { sockets: resourceCount(/UDP|TCP/), timers: resourceCount(/Timeout/) }
    expect(await look(port, { timeoutMs: 900 })).toMatchObject({ status: 'failed', fault: 'timeout' })
    await until(() => resourceCount(/UDP|TCP/) === before.sockets && resourceCount(/Timeout/) <= before.timers)
  })

  test('without a valid host is a mistake of the setting', () => {
    const { problems } = readSettings(host.settings, { clock: { reference: 'http://x/y' } }, { env: {}, folder: '/' })
    expect(problems.map(({ message }) => message)).toEqual([
      'is neither a host nor host:port: write a name, 10.0.0.7:53 or [fd00::7]:53',
    ])
  })
})

describe('the packets of NTP', () => {
  const nonce = Buffer.from('0102030405060708', 'hex')
  const requests = question(nonce)
  const at = Date.UTC(2026, 0, 1)
  const changed = (change: (packet: Buffer) => void): Buffer => {
    const packet = answerTo(requests, 0, at)
    change(packet)
    return packet
  }

  test('a question is 48 bytes, version 4, mode client', () => {
    expect(requests).toHaveLength(48)
    expect(requests[0]).toBe(0x23)
    expect(requests.subarray(40)).toEqual(nonce)
  })

  test('offset and round trip are those of the four times', () => {
    // Asked at 0, heard there at 130, answered at 140, back at 60: 105 ms behind, 50 ms on the way.
    const packet = answerTo(requests, 0, at)
    ntp(packet, 32, at + 130)
    ntp(packet, 40, at + 140)
    const { offset, roundTrip, stratum } = readAnswer(packet, nonce, at, at + 60)
    expect(offset).toBeCloseTo(105, 1)
    expect(roundTrip).toBeCloseTo(50, 1)
    expect(stratum).toBe(2)
  })

  test('the seconds wrap in February 2036, and the time continues', () => {
    const later = Date.UTC(2036, 1, 7, 6, 28, 30)
    expect(readAnswer(answerTo(requests, 0, later), nonce, later, later).offset).toBeCloseTo(0, 1)
  })

  test.each([
    ['is too short', (packet: Buffer) => packet.subarray(0, 47)],
    ['is to another question', () => changed((packet) => packet.fill(9, 24, 32))],
    ['does not come from a server', () => changed((packet) => packet.writeUInt8(0x23, 0))],
    ['says go away', () => changed((packet) => packet.fill('RATE', 12, 16).writeUInt8(0, 1))],
    ['is not synchronised', () => changed((packet) => packet.writeUInt8(0b11_100_100, 0))],
    ['has too high a stratum', () => changed((packet) => packet.writeUInt8(16, 1))],
    ['holds no time', () => changed((packet) => packet.fill(0, 40, 48))],
  ])('an answer that %s is refused', (_, packet) => {
    expect(() => readAnswer(packet(answerTo(requests, 0, at)), nonce, at, at)).toThrow()
  })

  test('a refusal is reported by its code', () => {
    const packet = changed((one) => one.fill('RATE', 12, 16).writeUInt8(0, 1))
    expect(() => readAnswer(packet, nonce, at, at)).toThrow('refuses to answer (RATE)')
  })

  test.each([
    ['time.example', { host: 'time.example', port: 123 }],
    ['time.example:1123', { host: 'time.example', port: 1123 }],
    ['[::1]:1123', { host: '::1', port: 1123 }],
    ['::1', { host: '::1', port: 123 }],
    ['192.0.2.1', { host: '192.0.2.1', port: 123 }],
    ['time.example:0', undefined],
    ['time.example:70000', undefined],
    ['[time.example]:1', undefined],
    ['a b', undefined],
  ])('the reference %s', (reference, expected) => {
    expect(parseHostPort(reference, 123)).toEqual(expected)
  })
})
