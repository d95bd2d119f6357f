import { expect, onTestFinished, test } from 'vitest'
import { fingerprint, isNameIn } from '../../../src/core/checks/engine/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { blackHole, peer } from '../../support/faults/faults.ts'
import { makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'

/** A server that lacks most figures of Redis, and counts how often each command arrives. */
const sparse = async () => {
  const info = 'redis_version:7.2.0\r\nrole:master\r\nloading:0\r\n'
  const server = await peer((socket) => {
    socket.on('data', (data) => {
      for (const [, command = ''] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n/g)) {
        if (command === 'PING') socket.write('+PONG\r\n')
        else socket.write(command === 'INFO' ? `$${info.length}\r\n${info}\r\n` : "-ERR unknown command '?'\r\n")
      }
    })
  })
  const run = (without?: readonly string[]) =>
    runKind(redis, { url: `redis://127.0.0.1:${server.port}` }, 'Advanced', { without })
  return { ...server, run }
}

test('H58 a check whose figure a server does not have is left out by its name, and the report says so', async () => {
  await using server = await sparse()
  const before = await server.run()
  const lacking = before.filter(({ status }) => status !== 'ok').map(({ check }) => check)
  expect(lacking).toContain('clients')
  expect(before[0]?.details ?? []).toEqual([])
  const after = await server.run(lacking)
  expect(after.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(after[0]).toMatchObject({ check: 'connect', details: [`left out (without): ${lacking.join(', ')}`] })
  const names = (results: typeof before) => results.map(({ check }) => check)
  expect(names(after)).toEqual(names(before).filter((name) => !lacking.includes(name)))
})

test('H58 a check that is left out does not run', async () => {
  await using server = await sparse()
  const pings = () => server.input().match(/PING/g)?.length ?? 0
  await server.run()
  const all = pings()
  await server.run(['latency'])
  expect(pings() - all).toBe(all - 10)
})

suiteWith(opensslMissing(), 'one result of several', () => {
  test('H58 leaving out one result of a check keeps its others', async () => {
    const made = makeCertificates()
    onTestFinished(() => made.remove())

    await using server = await peer(blackHole, { tls: made.otherHost })
    const settings = { host: '127.0.0.1', port: server.port, servername: 'svc.test', caFile: made.caFile }
    const failing = async (without?: readonly string[]) =>
      (await runKind(tls, settings, 'Standard', { without })).filter(({ status }) => status === 'failed')
    expect((await failing()).map(({ check }) => check)).toEqual(['host name'])
    expect(await failing(['host name'])).toEqual([])
    expect((await failing(['trust'])).map(({ check }) => check)).toEqual(['host name'])
  })
})

test.each([
  ['disk /var', ['disk <mount>'], true],
  ['disk', ['disk <mount>'], false],
  ['disk /var', ['disk /va'], false],
  ['read-only', ['read-only'], true],
  ['clock', undefined, false],
] as const)('H58 %s is one of %j: %s', (name, declared, is) => {
  expect(isNameIn(declared, name)).toBe(is)
})

test('H58 monitors that leave out different checks share no observation', () => {
  const monitor = { kind: redis, settings: { url: 'redis://a' }, configured: new Set(['url']) }
  const prints = [undefined, [], ['clients'], ['memory', 'clients'], ['clients', 'memory']].map((without) =>
    fingerprint({ ...monitor, without }),
  )
  expect(new Set(prints).size).toBe(3)
  expect(prints[0]).toBe(prints[1])
  expect(prints[3]).toBe(prints[4])
})
