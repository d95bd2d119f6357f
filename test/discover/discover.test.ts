import { describe, expect, test, vi } from 'vitest'
import { proposedFile } from '../../src/core/config/proposed.ts'
import { discover } from '../../src/core/discover/index.ts'
import { parseListening } from '../../src/core/discover/ports.ts'
import { blackHole, echo, peer, speaks } from '../support/faults/faults.ts'

const signal = (): AbortSignal => AbortSignal.timeout(25_000)
const here = (...ports: readonly number[]) => ({ ports: ports.map((port) => ({ host: '127.0.0.1', port })) })

describe('peers of no known kind', () => {
  test('one that sends nothing, one that echoes and one that hangs up are reported as not recognized', async () => {
    await using silent = await peer(blackHole)
    await using parrot = await peer(echo)
    await using rude = await peer((socket) => socket.destroy())
    await using hostile = await peer(speaks('\x1b]0;owned\x07 hello\n'))
    const { proposals, others } = await discover(signal(), here(silent.port, parrot.port, rude.port, hostile.port))
    expect(proposals).toEqual([])
    expect(new Set(others.map(({ port }) => port))).toEqual(
      new Set([silent.port, parrot.port, rude.port, hostile.port]),
    )
    expect(JSON.stringify(others)).not.toContain('owned')
    await vi.waitFor(() => expect([silent, parrot, rude, hostile].map((one) => one.open())).toEqual([0, 0, 0, 0]))
  })

  test('ports of svc itself are omitted', async () => {
    await using own = await peer(speaks('SSH-2.0-own\r\n'))
    expect(await discover(signal(), { ...here(own.port), skip: [own.port] })).toEqual({ proposals: [], others: [] })
  })

  test('no findings give a valid file', async () => {
    expect(await proposedFile([], ['empty'])).toBe('# empty\ntypes: {}\n')
  })
})

test('the table of the kernel is read: listening sockets alone, wildcards as loopback, IPv4 in IPv6', () => {
  const line = (address: string, state: string): string =>
    `   0: ${address} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000`
  const table = [
    '  sl  local_address rem_address   st',
    line('0100007F:1538', '0A'),
    line('00000000:0050', '0A'),
    line('0100007F:C001', '01'),
    line('00000000000000000000000000000000:0016', '0A'),
    line('00000000000000000000000001000000:0CEA', '0A'),
    line('0000000000000000FFFF00000100007F:18EB', '0A'),
  ].join('\n')
  expect(parseListening(table)).toEqual([
    { host: '127.0.0.1', port: 5432 },
    { host: '127.0.0.1', port: 80 },
    { host: '::1', port: 22 },
    { host: '::1', port: 3306 },
    { host: '127.0.0.1', port: 6379 },
  ])
})
