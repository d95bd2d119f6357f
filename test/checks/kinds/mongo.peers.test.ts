import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import mongo from '../../../src/core/checks/kinds/mongo/index.ts'
import { checked, checksOf, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { settled } from '../../support/faults/faults.ts'
import { type FerretdbServer, ferretdbMissing, startFerretdb } from '../../support/servers/ferretdb.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Overrides = Partial<Values<typeof mongo.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const word = 'correct horse'

const url = (port: number, user = 'monitor@'): string => `mongodb://${user}127.0.0.1:${port}/`
const run = (port: number, mode: Mode = 'Basic', overrides: Overrides = {}, options: RunKindOptions = {}) =>
  runKind(mongo, { url: url(port), password: secret(word), ...overrides }, mode, options)

peerSuite(ferretdbMissing, 'a real FerretDB', () => {
  let server: FerretdbServer
  beforeAll(async () => {
    server = await startFerretdb('monitor', word)
  }, 60_000)
  afterAll(() => server.remove())

  test('each mode signs in, and its results are ok', async () => {
    expect(checksOf(await run(server.port))).toEqual(['connect', 'hello', 'ping'])
    const results = await run(server.port, 'Advanced', { role: 'standalone' })
    expect(results.filter(({ status }) => status === 'failed')).toEqual([])
    expect(checked(results, 'role').message).toBe('is a standalone')
  })
  test('the round trip writes, reads, deletes, and sweeps what an earlier run left', async () => {
    const { MongoClient } = await import('mongodb')
    const auth = { username: 'monitor', password: word }
    const client = await MongoClient.connect(`mongodb://127.0.0.1:${server.port}/`, { auth, directConnection: true })
    const probes = client.db('svc_health').collection<{ _id: string; at: Date }>('probe')
    const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * 3_600_000)
    await probes.insertMany([
      { _id: 'svc-probe-old', at: hoursAgo(2) },
      { _id: 'svc-probe-young', at: hoursAgo(0.5) },
      { _id: 'not-ours', at: hoursAgo(2) },
    ])
    const result = checked(await run(server.port, 'Advanced', { allowWrites: true }), 'write concern')
    const left = (await probes.find().toArray()).map(({ _id }) => _id)
    await client.close()
    expect(result).toMatchObject({ status: 'ok', details: ['deleted 1 document that earlier runs left behind'] })
    expect(left.sort()).toEqual(['not-ours', 'svc-probe-young'])
  })
  test('a wrong password, and an unknown user, are auth', async () => {
    const otherPassword = checked(await run(server.port, 'Basic', { password: secret('hunter2-wrong') }), 'connect')
    expect(otherPassword).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(JSON.stringify(otherPassword)).not.toContain('hunter2')
    const nobody = await run(server.port, 'Basic', { url: url(server.port, 'nobody@') })
    expect(checked(nobody, 'connect')).toMatchObject({ fault: 'auth' })
  })
  test('a frozen server ends at the deadline, and leaves no socket', async () => {
    server.freeze()
    try {
      const result = checked(await run(server.port, 'Basic', {}, { timeoutMs: 600 }), 'connect')
      expect(result).toMatchObject({ fault: 'timeout' })
    } finally {
      server.thaw()
    }
    expect(await settled('')).toBe('')
  })
})
