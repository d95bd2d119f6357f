import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { type AnyKind, type Kind, limits, type Result } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { finds } from '../../support/engine/finds.ts'
import type { SilentRow } from '../../support/engine/kind-rows.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'
import { tcpKinds } from '../../support/engine/tcp-kinds.ts'

/** Why a kind over TCP has no setting `addresses`. */
const without: Partial<Record<KindName, string>> = {
  deployment: 'reads one text, from a file or a URL; `version` of the kind http compares the addresses of a name',
}
/** Kinds that take a host and speak over no TCP. */
const others: readonly KindName[] = ['ping']
const kinds = (Object.keys(tcpKinds) as KindName[]).filter((name) => without[name] === undefined)

/** Accepts connections at one of two addresses, and ends each. */
const sockets = new Set<Socket>()
const server = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.end()
})
beforeAll(async () => {
  await once(server.listen(0, '127.0.3.1'), 'listening')
})
afterAll(() => {
  server.close()
  for (const socket of sockets) socket.destroy()
})

/** Refuses every password of Redis, at two addresses, and counts them. */
async function refusingRedis() {
  let signIns = 0
  const listeners = ['127.0.3.1', '127.0.3.2'].map((host) => {
    const redis = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => {
        signIns += 1
        socket.write('-WRONGPASS invalid username-password pair\r\n')
      })
    })
    return { host, redis }
  })
  const [first, second] = listeners
  if (!first || !second) throw new Error('two addresses are needed')
  await once(first.redis.listen(0, first.host), 'listening')
  const { port } = first.redis.address() as AddressInfo
  await once(second.redis.listen(port, second.host), 'listening')
  return {
    port,
    signIns: () => signIns,
    [Symbol.asyncDispose]: async () => {
      for (const { redis } of listeners) await new Promise((done) => redis.close(done))
    },
  }
}

const kindOf = async (name: KindName): Promise<Kind<SettingsSpec>> =>
  (await monitors[name].load()).default as AnyKind as Kind<SettingsSpec>

const orders = [
  ['127.0.3.1', '127.0.3.2'],
  ['127.0.3.2', '127.0.3.1'],
]

/** The worst status of the address at which nothing listens, in both orders. */
async function deadIn(name: KindName, mode: ExecutionMode): Promise<readonly (Result['status'] | undefined)[]> {
  const kind = await kindOf(name)
  await kind.preload?.()
  const { port } = server.address() as AddressInfo
  const { settings } = tcpKinds[name] as SilentRow
  const statuses: (Result['status'] | undefined)[] = []
  for (const addresses of orders) {
    const resolve = () => Promise.resolve(addresses)
    const results = await runKind(kind, settings(port, 'two.test') as never, mode, { resolve })
    const dead = results.filter(({ address }) => address === `127.0.3.2:${port}`).map(({ status }) => status)
    statuses.push(dead.includes('failed') ? 'failed' : dead[0])
  }
  return statuses
}

test('H51 every kind that takes a host has the setting addresses', async () => {
  const declared = await Promise.all(
    (Object.keys(monitors) as KindName[]).map(async (name) =>
      'addresses' in (await kindOf(name)).settings ? [name] : [],
    ),
  )
  expect(declared.flat().toSorted()).toEqual([...kinds, ...others].toSorted())
})

describe.each(kinds)('H51 %s', (name) => {
  test.each(ExecutionMode.values)(
    'sees that one of two addresses is dead, whatever their order, in %s',
    async (mode) => {
      const statuses = await deadIn(name, mode)
      expect(statuses).not.toContain(undefined)
      expect(statuses).not.toContain('ok')
      if (mode === 'Advanced' && name !== 'http-steps') expect(statuses).toEqual(['failed', 'failed'])
    },
  )
})

test.each(ExecutionMode.values)(
  'H51 a sign-in that one address refuses is repeated at no other, in %s',
  async (mode) => {
    await using redis = await refusingRedis()
    const settings = { url: `redis://two.test:${redis.port}`, password: secret('wrong'), insecure: true }
    const results = await runKind(await kindOf('redis'), settings as never, mode, {
      resolve: () => Promise.resolve(['127.0.3.1', '127.0.3.2']),
    })
    expect(results.map(({ fault, address }) => [fault, address])).toEqual([['auth', `127.0.3.1:${redis.port}`]])
    expect(redis.signIns()).toBe(1)
  },
)

test('H51 a dead address does not hide that the sign-in was refused: it is not repeated in the next run', async () => {
  await using redis = await refusingRedis()
  const settings = { url: `redis://two.test:${redis.port}`, password: secret('wrong'), insecure: true }
  const options = { limits: limits(), resolve: () => Promise.resolve(['127.0.3.9', '127.0.3.1']) }
  const kind = await kindOf('redis')
  await runKind(kind, settings as never, 'Basic', options)
  await finds(runKind(kind, settings as never, 'Basic', options), ['sign-in', /^refused: /])
  expect(redis.signIns()).toBe(1)
})

test.each(orders)(
  'H51 localhost is one machine, whose servers may listen at one of its addresses only: %s, %s',
  async (...order) => {
    const { port } = server.address() as AddressInfo
    for (const mode of ExecutionMode.values) {
      const results = await runKind(await kindOf('tcp'), { host: 'localhost', port } as never, mode, {
        resolve: () => Promise.resolve(order),
      })
      expect(results.map(({ check, address }) => [check, address])).toContainEqual(['connect', `127.0.3.1:${port}`])
      expect(results.filter(({ address }) => address === `127.0.3.2:${port}`)).toEqual([])
    }
  },
)
