import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { listeningSockets, type SocketTable } from '../../../src/core/base/net/connect.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-sockets-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const rest = '00000000:00000000 00:00000000 00000000     0        0 3692253 1 000000000f11fb60 100 0 0 10 0'
/** As wide as the kernel writes it. */
const row = (local: string, remote: string, state: string): string =>
  `${`   0: ${local} ${remote} ${state} ${rest}`.padEnd(149)}\n`
const v4 = { none: '00000000:0000', peer: '0100007F:C350' }
const noneV6 = `${'0'.repeat(32)}:0000`

function table(name: string, rows: readonly string[]): string {
  const file = join(folder, name)
  writeFileSync(
    file,
    `${'  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid'.padEnd(149)}\n${rows.join('')}`,
  )
  return file
}

/** A table, with the number of its sockets as the kernel counts them, or without it. */
function tableOf(sockets: string, counts = ''): SocketTable {
  const file = `${sockets}-counts`
  writeFileSync(file, `sockets: used 9\n${counts}\nUDP: inuse 1 mem 0\n`)
  return { sockets, counts: file }
}

describe('the ports that may be open, by the sockets that Linux lists', () => {
  const listening = table('tcp', [
    row('0100007F:1538', v4.none, '0A'),
    row('00000000:0CEA', v4.none, '0A'),
    row('0100007F:0599', v4.peer, '01'),
  ])
  const listening6 = table('tcp6', [row(`${'0'.repeat(32)}:1920`, noneV6, '0A')])

  test('are those of listening sockets of IPv4 and IPv6, and no others', () => {
    const mayListen = listeningSockets([tableOf(listening), tableOf(listening6)])
    expect([5432, 3306, 6432].map(mayListen)).toEqual([true, true, true])
    // A connection of that port, one that nobody uses, and the ports in the columns of peers.
    expect([1433, 5433, 50_000, 0].map(mayListen)).toEqual([false, false, false, false])
  })

  test('are all where the list is missing or long, so that none is overlooked', () => {
    expect(listeningSockets([tableOf(join(folder, 'missing'))])(5433)).toBe(true)
    const many = Array.from({ length: 200 }, () => row('0100007F:1538', v4.none, '0A'))
    expect(listeningSockets([tableOf(table('long', many))])(5433)).toBe(true)
  })

  test.each([
    ['TCP: inuse 2 orphan 0 tw 0 alloc 2 mem 1', [true, true, false]],
    ['TCP: inuse 1 orphan 0 tw 1 alloc 2 mem 1', [true, true, false]],
    ['TCP6: inuse 1', [true, false, false]],
    ['TCP6: inuse 0', [false, false, false]],
    ['TCPX: inuse 0', [true, true, true]],
  ])('are read up to as many sockets as the kernel counts: %s', (counts, expected) => {
    const three = ['0100007F:1538', '00000000:0CEA', '00000000:1920'].map((local) => row(local, v4.none, '0A'))
    const mayListen = listeningSockets([tableOf(table('three', three), counts)])
    expect([5432, 3306, 6432].map(mayListen)).toEqual(expected)
  })

  test('contain a port of this machine that listens', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    expect(listeningSockets()((server.address() as AddressInfo).port)).toBe(true)
    server.close()
  })
})
