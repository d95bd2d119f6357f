import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import ping, { loss, parsePing, pingCommand, roundTrip } from '../../../src/core/checks/kinds/ping/index.ts'
import { checked, evaluated, runKind } from '../../support/engine/run-kind.ts'
import { childrenOf } from '../../support/servers/process-tree.ts'
import { findProgram } from '../../support/servers/server.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const missing = findProgram('ping') === undefined ? 'the program ping is not installed' : undefined

suiteWith(missing, 'the real program ping', () => {
  test.each(['127.0.0.1', '::1', 'localhost'])('%s answers each packet', async (host) => {
    const results = await runKind(ping, { host, count: 3 }, 'Standard')
    expect(results.map(({ check, status }) => [check, status])).toEqual([
      ['loss', 'ok'],
      ['round trip', 'ok'],
    ])
    expect(checked(results, 'loss')).toMatchObject({
      address: host === 'localhost' ? '127.0.0.1' : host,
      measurement: { value: 0, unit: 'percent', warn: 10, limit: 50, bound: 'atMost' },
    })
    expect(checked(results, 'loss').message).toMatch(/answered 3 of 3 packets, loss 0 %/)
    expect(checked(results, 'round trip').measurement).toMatchObject({ unit: 'milliseconds', limit: 1_000 })
  })

  test('a host that does not answer fails, and its round trip is left out', async () => {
    // 240.0.0.0/4 is reserved: no host has such an address.
    const results = await runKind(ping, { host: '240.0.0.1', count: 1 }, 'Basic')
    expect(results).toMatchObject([{ check: 'loss', status: 'failed', address: '240.0.0.1' }])
  })

  test('every address of a name is tested from Standard on, the first one in Basic', async () => {
    const resolve = () => Promise.resolve(['127.0.0.1', '::1'])
    const addresses = async (mode: 'Basic' | 'Standard') =>
      (await runKind(ping, { host: 'both.test', count: 1 }, mode, { resolve })).map(({ address }) => address)
    expect(await addresses('Basic')).toEqual(['127.0.0.1', '127.0.0.1'])
    expect(await addresses('Standard')).toEqual(['127.0.0.1', '127.0.0.1', '::1', '::1'])
  })

  test('H54 a machine without a route for IPv6 tests the IPv4 addresses of a name', async () => {
    const resolve = () => Promise.resolve(['127.0.0.1', '2001:db8::1'])
    const { networkInterfaces } = os
    os.networkInterfaces = () => ({})
    syncBuiltinESMExports()
    onTestFinished(() => {
      os.networkInterfaces = networkInterfaces
      syncBuiltinESMExports()
    })

    for (const addresses of [undefined, 'all'] as const) {
      const settings = { host: 'both.test', count: 1, ...(addresses && { addresses }) }
      const results = await runKind(ping, settings, 'Standard', { resolve })
      expect(results.map(({ address, status }) => [address, status])).toEqual([
        ['127.0.0.1', 'ok'],
        ['127.0.0.1', 'ok'],
      ])
    }
  })

  test('a host that looks like a flag is a name that does not resolve', async () => {
    const results = await runKind(ping, { host: '-f' }, 'Basic')
    expect(results).toMatchObject([{ status: 'failed', fault: 'dns' }])
  })

  test('the deadline ends the program', async () => {
    const before = childrenOf(process.pid)
    const results = await runKind(ping, { host: '127.0.0.1', count: 20 }, 'Basic', { timeoutMs: 500 })
    expect(results).toMatchObject([{ check: 'loss', status: 'failed', fault: 'timeout' }])
    expect(childrenOf(process.pid)).toEqual(before)
  })
})

describe('ping evaluations', () => {
  const lossOf = (sent: number, received: number) =>
    evaluated(loss, { ip: '192.0.2.1', sent, received, averageMs: 3 })[0]

  test('the boundaries of loss and round trip are ok', () => {
    expect([lossOf(10, 9), lossOf(10, 8), lossOf(10, 5), lossOf(10, 4)].map((one) => one?.status).join(' ')).toBe(
      'ok warning warning failed',
    )
    expect(lossOf(5, 0)).toMatchObject({ status: 'failed', fault: 'timeout', measurement: { value: 100 } })
    const timeOf = (averageMs: number) =>
      evaluated(roundTrip, { ip: '192.0.2.1', sent: 1, received: 1, averageMs })[0]?.status
    expect([200, 201, 1_000, 1_001].map(timeOf)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })

  test('an account without the privilege gets the commands that grant it', () => {
    const [result] = evaluated(loss, { ip: '192.0.2.1', refused: 'ping: socktype: SOCK_RAW: Operation not permitted' })
    expect(result).toMatchObject({ status: 'warning', notChecked: 'permission' })
    expect(result?.details?.join()).toContain('ping_group_range')
    expect(evaluated(loss, { ip: '192.0.2.1', unusable: 'the program ping is not installed' })).toMatchObject([
      { status: 'failed', notChecked: 'missing' },
    ])
    expect(evaluated(loss, { ip: '192.0.2.1', unusable: "ping: invalid option -- '4'" })).toMatchObject([
      { status: 'failed', notChecked: 'missing' },
    ])
    expect(evaluated(loss, { ip: '192.0.2.1', problem: 'connect: Network is unreachable' })).toMatchObject([
      { status: 'failed', fault: 'refused' },
    ])
  })
})

describe('ping of other systems (simulated)', () => {
  test.each([
    ['linux', '192.0.2.1', ['-n', '-q', '-4', '-c', '5', '-i', '0.2', '-W', '2', '192.0.2.1']],
    ['linux', '2001:db8::1', ['-n', '-q', '-6', '-c', '5', '-i', '0.2', '-W', '2', '2001:db8::1']],
    ['darwin', '192.0.2.1', ['-n', '-q', '-c', '5', '-i', '0.2', '-W', '1500', '192.0.2.1']],
    ['darwin', '2001:db8::1', ['-n', '-q', '-c', '5', '-i', '0.2', '2001:db8::1']],
    ['win32', '192.0.2.1', ['-4', '-n', '5', '-w', '1500', '192.0.2.1']],
    ['win32', '2001:db8::1', ['-6', '-n', '5', '-w', '1500', '2001:db8::1']],
  ])('the arguments on %s for %s', (platform, ip, args) => {
    expect(pingCommand(platform, { ip, count: 5, waitMs: 1_500 })?.args).toEqual(args)
  })

  test('an unknown system has no command', () => {
    expect(pingCommand('aix', { ip: '192.0.2.1', count: 1, waitMs: 1_000 })).toBeUndefined()
  })

  test.each([
    [
      'iputils',
      '--- 192.0.2.1 ping statistics ---\n5 packets transmitted, 4 received, 20% packet loss, time 804ms\nrtt min/avg/max/mdev = 8.641/9.250/10.100/0.300 ms\n',
      { sent: 5, received: 4, averageMs: 9.25 },
    ],
    [
      'iputils, no route',
      '3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 401ms\npipe 3\n',
      { sent: 3, received: 0, averageMs: undefined },
    ],
    [
      'BusyBox',
      '3 packets transmitted, 3 packets received, 0% packet loss\nround-trip min/avg/max = 0.050/0.083/0.110 ms\n',
      { sent: 3, received: 3, averageMs: 0.083 },
    ],
    [
      'macOS',
      '5 packets transmitted, 5 packets received, 0.0% packet loss\nround-trip min/avg/max/stddev = 12.1/13.5/15.2/1.1 ms\n',
      { sent: 5, received: 5, averageMs: 13.5 },
    ],
    [
      'Windows',
      `${'Reply from 192.0.2.1: bytes=32 time<1ms TTL=128\r\n'.repeat(3)}\r\nPing statistics for 192.0.2.1:\r\n    Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),\r\nApproximate round trip times in milli-seconds:\r\n    Minimum = 0ms, Maximum = 2ms, Average = 1ms\r\n`,
      { sent: 4, received: 3, averageMs: 1 },
    ],
    [
      'Windows in German',
      'Ping-Statistik für 192.0.2.1:\r\n    Pakete: Gesendet = 4, Empfangen = 4, Verloren = 0\r\n    (0% Verlust),\r\nCa. Zeitangaben in Millisek.:\r\n    Minimum = 10ms, Maximum = 12ms, Mittelwert = 11ms\r\n',
      { sent: 4, received: 4, averageMs: 11 },
    ],
    [
      'Windows without a reply',
      'Request timed out.\r\n\r\nPing statistics for 192.0.2.1:\r\n    Packets: Sent = 2, Received = 0, Lost = 2 (100% loss),\r\n',
      { sent: 2, received: 0, averageMs: undefined },
    ],
    [
      'Windows, where a router answers that the host cannot be reached',
      'Reply from 192.0.2.9: Destination host unreachable.\r\n\r\nPing statistics for 192.0.2.1:\r\n    Packets: Sent = 2, Received = 2, Lost = 0 (0% loss),\r\n',
      { sent: 2, received: 0, averageMs: undefined },
    ],
    [
      'Windows, where a router answers for one of two packets',
      'Reply from 192.0.2.9: Destination host unreachable.\r\nReply from 192.0.2.1: bytes=32 time=3ms TTL=60\r\n\r\nPing statistics for 192.0.2.1:\r\n    Packets: Sent = 2, Received = 2, Lost = 0 (0% loss),\r\nApproximate round trip times in milli-seconds:\r\n    Minimum = 3ms, Maximum = 3ms, Average = 3ms\r\n',
      { sent: 2, received: 1, averageMs: 3 },
    ],
    ['anything else', 'usage: ping [-c count]', undefined],
  ])('the recorded output of %s is read', (_, output, expected) => {
    expect(parsePing(output)).toEqual(expected)
  })
})
