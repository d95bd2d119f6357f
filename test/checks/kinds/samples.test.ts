import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { costOf } from '../../../src/core/checks/engine/cost.ts'
import { limits, runMonitors } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { checked, runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'

/** A pool behind one port: each connection gets the next of these answers to every command. */
async function pool(answers: readonly string[]) {
  let connections = 0
  let open = 0
  let most = 0
  const server = createServer((socket: Socket) => {
    const at = connections
    connections += 1
    open += 1
    most = Math.max(most, open)
    socket.on('error', () => {})
    socket.once('close', () => {
      open -= 1
    })
    socket.on('data', (data) => {
      const isSignIn = String(data).includes('AUTH')
      const answer = answers[at % answers.length] ?? ''
      if (answer !== well) return void socket.write(answer)
      socket.write(isSignIn ? '+OK\r\n' : String(data).includes('INFO') ? information : well)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `redis://127.0.0.1:${port}`,
    connections: () => connections,
    most: () => most,
    [Symbol.asyncDispose]: () => new Promise<void>((done) => void server.close(() => done())),
  }
}
const figures = 'redis_version:7.2.4\r\nrole:master\r\nloading:0\r\n'
const information = `$${figures.length}\r\n${figures}\r\n`
const well = '+PONG\r\n'
const loading = '-LOADING Redis is loading the dataset in memory\r\n'
const refusal = '-WRONGPASS invalid username-password pair\r\n'

test('H52 one member of a pool that refuses is found, whichever connection gets it', async () => {
  for (const answers of [
    [well, well, loading],
    [loading, well, well],
  ]) {
    await using servers = await pool(answers)
    const results = await runKind(redis, { url: servers.url, samples: 6 }, 'Standard')
    expect(checked(results, 'samples')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(checked(results, 'samples').message).toMatch(/^2 of 6 refused: 127\.0\.0\.1:\d+ is still loading/)
    expect(servers.connections()).toBe(costOf(redis, 'Standard', { samples: 6 })?.connections)
  }
})

test('H52 the connections are open at the same time, and Basic opens one only', async () => {
  await using servers = await pool([well])
  expect((await runKind(redis, { url: servers.url, samples: 5 }, 'Basic')).map(({ check }) => check)).not.toContain(
    'samples',
  )
  expect(servers.connections()).toBe(1)
  const results = await runKind(redis, { url: servers.url, samples: 5 }, 'Advanced')
  expect(checked(results, 'samples').message).toMatch(/ served 5 of 5 connections$/)
  expect(servers.most()).toBe(5)
})

test('H52 a silent member is found within the time of a run in Basic', async () => {
  await using servers = await pool([well, ''])
  const results = await runKind(redis, { url: servers.url, samples: 4 }, 'Standard', { timeoutMs: 1_500 })
  expect(checked(results, 'samples')).toMatchObject({ status: 'failed', fault: 'timeout' })
  expect(checked(results, 'samples').message).toMatch(/^2 of 4 silent: /)
})

test('H52 without an accepted sign-in no other connection follows', async () => {
  await using servers = await pool([refusal])
  const results = await runKind(redis, { url: servers.url, password: secret('x'), samples: 5 }, 'Standard')
  expect(results.map(({ fault }) => fault)).toEqual(['auth'])
  expect(servers.connections()).toBe(1)
})

test('H52 a refused sign-in of another connection is a failure of the pool', async () => {
  await using servers = await pool([well, refusal])
  const results = await runKind(redis, { url: servers.url, password: secret('x'), samples: 2 }, 'Standard')
  expect(checked(results, 'samples')).toMatchObject({ status: 'failed', fault: 'auth' })
  expect(checked(results, 'samples').message).toMatch(/^1 of 2 refused: /)
})

test('H52 the schedule takes samples in Advanced, and in Standard only where the monitor has an interval for it', async () => {
  const connections = async (mode: 'Standard' | 'Advanced', every?: { readonly Standard: number }): Promise<number> => {
    await using servers = await pool([well])
    const monitor = {
      name: 'pool',
      kind: redis,
      settings: withDefaults(redis.settings, { url: servers.url, samples: 3 }),
      depth: 'Basic' as const,
      host: false,
      dependsOn: [],
      retries: 0,
      deployment: false,
      every,
    }
    const signal = new AbortController().signal
    await runMonitors([monitor], { ...engineFixture(), limits: limits() }, { mode, signal, cause: 'schedule' })
    return servers.connections()
  }
  expect(await connections('Standard')).toBe(1)
  expect(await connections('Standard', { Standard: 600_000 })).toBe(3)
  expect(await connections('Advanced')).toBe(3)
})

test('H52 samples beside addresses: all is a mistake', () => {
  const settings = withDefaults(redis.settings, { url: 'redis://two.test', samples: 3, addresses: 'all' })
  expect(redis.validate?.(settings as never)).toMatch(/^samples tests what is behind one address/)
})

test('H52 samples would send a POST several times, which is a mistake', () => {
  const settings = withDefaults(http.settings, { url: 'http://two.test/', method: 'POST', samples: 2 })
  expect(http.validate?.(settings as never)).toMatch(/^samples would send the POST several times/)
})
