import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Secret } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import {
  autoIncrement,
  historyList,
  lockWait,
  threads,
  transactions,
} from '../../../src/core/checks/kinds/mysql/checks.ts'
import { errantOfMariadb } from '../../../src/core/checks/kinds/mysql/errant-transactions.ts'
import { flowControl, galera } from '../../../src/core/checks/kinds/mysql/galera.ts'
import { groupReplication } from '../../../src/core/checks/kinds/mysql/group-replication.ts'
import mysql from '../../../src/core/checks/kinds/mysql/index.ts'
import {
  replication,
  replicationStatement,
  role,
  semiSync,
  sourceHeartbeat,
} from '../../../src/core/checks/kinds/mysql/replication.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { evaluated, runKind } from '../../support/engine/run-kind.ts'
import { peer } from '../../support/faults/faults.ts'
import { word } from './sql/suite.ts'

describe('mysql: a peer that closes the connection at once (simulated)', () => {
  test.each([0, 50])('MariaDB: is reported at once, also if reading the password takes %i ms', async (ms) => {
    await using closing = await peer((socket) => socket.end())
    const password = new Secret('{file: slow}', () => wait(ms, word))
    const url = `mysql://monitor@127.0.0.1:${closing.port}/`
    const results = await runKind(mysql, { url, password }, 'Basic', { timeoutMs: 20_000 })
    expect(results).toMatchObject([
      {
        check: 'connect',
        fault: 'protocol',
        message: `127.0.0.1:${closing.port} closed the connection before it answered`,
      },
    ])
  })
})

describe('mysql: figures against limits', () => {
  const levels = (results: readonly Result[]): string => results.map((result) => result.status).join(' ')
  const healthy = { connected: 1, running: 1, max: 100, upMs: 60_000 }
  const channel = {
    name: '',
    receives: 'Yes',
    applies: 'Yes',
    lagMs: 0,
    errors: [] as string[],
    filters: [] as string[],
    heartbeatMs: undefined,
    received: undefined,
  }
  const channels = (...some: Partial<Omit<typeof channel, 'lagMs'> & { lagMs: number | undefined }>[]) => ({
    channels: some.map((one) => ({ ...channel, ...one })),
    group: undefined,
  })
  const provider = '/usr/lib/galera/libgalera_smm.so'
  const synced = {
    answered: true,
    provider,
    on: 'ON',
    rejects: 'NONE',
    ready: true,
    cluster: 'Primary',
    state: 'Synced',
    size: 3,
  }

  test('MariaDB: boundaries belong to what is well; one figure is a warning', () => {
    expect(levels(evaluated(threads, { letsInEverybody: false, ...healthy, connected: 80, running: 60 }))).toBe(
      'ok ok ok',
    )
    expect(levels(evaluated(threads, { letsInEverybody: false, ...healthy, connected: 81, running: 61 }))).toBe(
      'warning warning ok',
    )
    expect(levels(evaluated(threads, { letsInEverybody: false, ...healthy, connected: 100, running: 100 }))).toBe(
      'warning warning ok',
    )
    expect(
      levels(
        evaluated(
          threads,
          { letsInEverybody: false, ...healthy, connected: 96 },
          { connections: { warn: 80, limit: 95 } },
        ),
      ),
    ).toBe('failed ok ok')
    expect(levels(evaluated(threads, { letsInEverybody: false, ...healthy, upMs: 59_000 }))).toBe('ok ok warning')
    expect(levels(evaluated(replication, channels({ lagMs: 30_000 })))).toBe('ok ok')
    expect(levels(evaluated(replication, channels({ lagMs: 31_000 })))).toBe('ok warning')
    expect(levels(evaluated(replication, channels({ lagMs: 31_000 }), { replicationLag: { limit: 30_000 } }))).toBe(
      'ok failed',
    )
    const transaction = (maxMs: number) => levels(evaluated(transactions, { open: 1, thread: 5, maxMs }))
    expect(transaction(120_000)).toBe('ok')
    expect(transaction(121_000)).toBe('warning')
    expect(transaction(301_000)).toBe('failed')
  })
  test('MariaDB: a thread that does not run fails, and the channel is named; an unknown lag is never well', () => {
    expect(evaluated(replication, channels({}, { name: 'eu', receives: 'Connecting', errors: ['no route'] }))).toEqual([
      expect.objectContaining({
        status: 'failed',
        message: 'eu: does not receive (IO thread: Connecting)',
        details: ['no route'],
      }),
    ])
    expect(levels(evaluated(replication, channels({}, { lagMs: undefined })))).toBe('ok warning')
    expect(levels(evaluated(replication, channels()))).toBe('ok')
    expect(levels(evaluated(replication, channels(), { replica: true }))).toBe('failed')
  })
  test('MariaDB: Galera: ready, in the primary component, synced', () => {
    expect(evaluated(galera, { ...synced, provider: 'none', on: 'OFF' })).toEqual([])
    expect(evaluated(galera, { ...synced, provider: '', on: '' })).toEqual([])
    expect(evaluated(galera, { ...synced, on: 'OFF' })[0]).toMatchObject({
      status: 'failed',
      message: 'wsrep_on is OFF: this node of a Galera cluster does not replicate its writes',
    })
    expectResult(evaluated(galera, synced)[0], 'ok: Synced, Primary component of 3 nodes')
    expect(levels(evaluated(galera, { ...synced, ready: false }))).toBe('failed')
    expect(levels(evaluated(galera, { ...synced, rejects: 'ALL_KILL' }))).toBe('failed')
    expect(levels(evaluated(galera, { ...synced, cluster: 'non-Primary' }))).toBe('failed')
    expect(levels(evaluated(galera, { ...synced, state: 'Donor/Desynced' }))).toBe('warning')
  })
  test('MySQL: a group needs more than half of its members, and a member belongs to it only while it is online', () => {
    const member = (state: string, isOwn = false) => ({ name: 'db:3306', isOwn, state, role: '' })
    const group = (...states: readonly string[]) =>
      evaluated(groupReplication, {
        answered: true,
        isSetUp: true,
        isReadOnly: true,
        members: states.map((state, n) => member(state, n === 0)),
      })
    expect(levels(group('ONLINE', 'ONLINE', 'ONLINE'))).toBe('ok')
    expect(levels(group('ONLINE', 'ONLINE', 'UNREACHABLE'))).toBe('warning')
    expect(levels(group('ONLINE', 'UNREACHABLE'))).toBe('failed')
    expect(levels(group('ONLINE', 'RECOVERING', 'UNREACHABLE', 'UNREACHABLE'))).toBe('failed')
    expect(levels(group('RECOVERING', 'ONLINE', 'ONLINE'))).toBe('warning')
    expect(levels(group('ERROR'))).toBe('failed')
    expect(group('OFFLINE')[0]?.message).toBe('this member is OFFLINE: it does not belong to its group')
    expect(levels(evaluated(groupReplication, { answered: true, isSetUp: true, isReadOnly: true, members: [] }))).toBe(
      'failed',
    )
    const absent = { answered: true, isSetUp: false, isReadOnly: false, members: [] }
    expect(evaluated(groupReplication, absent)).toEqual([])
    expect(evaluated(groupReplication, { ...absent, answered: false })[0]).toMatchObject({ notChecked: 'missing' })
  })
  test('MySQL: a source is silent after 1.5 heartbeat periods and a second, and never without heartbeats', () => {
    const silent = (silentMs: number | undefined, periodMs: number | undefined = 30_000) =>
      levels(evaluated(sourceHeartbeat, [{ name: '', periodMs, silentMs }]))
    expect([46_000, 46_001].map((ms) => silent(ms))).toEqual(['ok', 'failed'])
    expect([silent(undefined), silent(100_000, 0)]).toEqual(['ok', 'ok'])
    expect(evaluated(sourceHeartbeat, [])).toEqual([])
    const several = [
      { name: 'eu', periodMs: 30_000, silentMs: 31_000 },
      { name: 'us', periodMs: 1_000, silentMs: 3_000 },
    ]
    expect(evaluated(sourceHeartbeat, several)[0]).toMatchObject({
      status: 'failed',
      message: 'the source of us has sent nothing for 3 s, and sends a heartbeat every 1 s',
    })
  })
  test('MariaDB: flow control: 20 % and 90 % are ok to the boundary, and so are 16 write sets', () => {
    const flow = (share: number | undefined, smallest: number | undefined) =>
      evaluated(flowControl, { pausedNs: 1, queue: 1, isConnected: true, share, smallest })
    expect([20, 20.1, 90, 90.1].map((share) => levels(flow(share, 16)))).toEqual([
      'ok ok',
      'warning ok',
      'warning ok',
      'failed ok',
    ])
    expect(levels(flow(0, 17))).toBe('ok warning')
    expect(flow(undefined, undefined)).toMatchObject([{ notChecked: 'missing' }, { notChecked: 'missing' }])
  })
  test('MariaDB: semi-synchronous replication: off, without replicas, on a replica', () => {
    const on = { answered: true, isOn: true, isReadOnly: false, status: 'ON', replicas: 1 }
    expect(levels(evaluated(semiSync, on))).toBe('ok')
    expect(levels(evaluated(semiSync, { ...on, status: 'OFF' }))).toBe('warning')
    expect(levels(evaluated(semiSync, { ...on, replicas: 0 }))).toBe('warning')
    expect(evaluated(semiSync, { ...on, status: '' })[0]).toMatchObject({ notChecked: 'missing' })
    expect(evaluated(semiSync, { ...on, isReadOnly: true, status: 'OFF' })).toEqual([])
    expect(evaluated(semiSync, { ...on, isOn: false })).toEqual([])
  })
  test('MariaDB: transactions that the source lacks are those beyond its last one of the same domain and server', () => {
    expect(errantOfMariadb('0-1-100,0-2-7', '0-1-105,0-2-7')).toBe('')
    expect(errantOfMariadb('0-1-100,0-2-8', '0-1-105,0-2-7')).toBe('0-2-8')
    expect(errantOfMariadb('0-1-100,1-2-1', '0-1-100')).toBe('1-2-1')
    expect(errantOfMariadb('', '0-1-100')).toBe('')
  })
  test('MariaDB: the role and lock waits are not checked where the server does not report them', () => {
    const missing = { status: 'failed', notChecked: 'missing' }
    expect(evaluated(role, { readOnly: undefined, sources: undefined, group: undefined })[0]).toMatchObject(missing)
    const waits = { total: 2, waiting: 1, maxMs: 60_000, session: 7, state: 'Waiting for backup lock' }
    expect(levels(evaluated(lockWait, waits))).toBe('ok')
    expect(levels(evaluated(lockWait, { ...waits, maxMs: 61_000 }))).toBe('warning')
    expect(levels(evaluated(lockWait, { ...waits, maxMs: 121_000 }))).toBe('failed')
    expect(evaluated(lockWait, { ...waits, maxMs: undefined })[0]).toMatchObject(missing)
    expect(evaluated(lockWait, { ...waits, total: 0, waiting: 0 })[0]).toMatchObject(missing)
  })
  test.each([
    ['any', [], 0, 'ok accepts writes'],
    ['source', [], 0, 'ok accepts writes'],
    ['replica', [], 0, 'failed accepts writes and has no source, expected a replica'],
    ['any', ['read_only'], 0, 'warning accepts no writes although it is not a replica: read_only is on'],
    ['source', ['read_only'], 0, 'failed accepts no writes, expected a source: read_only is on'],
    ['source', ['tx_read_only'], 0, 'failed accepts no writes, expected a source: tx_read_only is on'],
    ['replica', ['read_only'], 0, 'ok accepts no writes of clients, as a replica: read_only is on'],
    ['any', ['read_only'], 1, 'ok is a read-only replica: read_only is on'],
    ['replica', [], 1, 'warning is a replica that accepts writes of clients: read_only is off'],
  ] as const)('MariaDB: expected %s, with %j on and %i sources', (expected, readOnly, sources, verdict) => {
    const [result] = evaluated(role, { readOnly, sources, group: undefined }, { role: expected })
    expect(`${result?.status} ${result?.message}`).toBe(verdict)
  })
  test('MariaDB: values of AUTO_INCREMENT: 70 % and 90 % are ok to the boundary', () => {
    const counted = (used: number | undefined, tables: number | undefined = 1) =>
      evaluated(autoIncrement, { tables, mayRead: true, grant: '', columns: [{ name: 'o.j.id', type: 'int', used }] })
    expect([70, 70.1, 90, 90.1].map((used) => levels(counted(used)))).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect(counted(undefined)[0]).toMatchObject({ notChecked: 'missing' })
    const none = { tables: undefined, mayRead: true, grant: '', columns: [] }
    expect(evaluated(autoIncrement, none)[0]).toMatchObject({ notChecked: 'missing' })
  })
  test('MariaDB: history list: 100,000 and 1,000,000 are ok to the boundary', () => {
    const length = (n: number | undefined) => evaluated(historyList, { isCounted: true, length: n })
    expect([100_000, 100_001, 1_000_000, 1_000_001].map((n) => levels(length(n))).join(' ')).toBe(
      'ok warning warning failed',
    )
    expect(length(undefined)[0]).toMatchObject({ notChecked: 'missing' })
  })
  test('H47 MariaDB: skip_grant_tables is named, and innodb_read_only fails unless it is meant to be', () => {
    const open = evaluated(threads, { ...healthy, letsInEverybody: true })
    expect(open.at(-1)).toMatchObject({ check: 'grant tables', status: 'warning' })
    const readOnly = { readOnly: ['innodb_read_only'], sources: 0, group: undefined }
    expect(evaluated(role, readOnly)).toMatchObject([{ status: 'failed', message: expect.stringContaining('at all') }])
    expect(evaluated(role, readOnly, { role: 'replica' })).toMatchObject([{ status: 'ok' }])
  })

  test('MariaDB: what the server does not report is not checked', () => {
    const missing = { status: 'failed', notChecked: 'missing' }
    const unknown = { letsInEverybody: false, connected: undefined, running: undefined, max: 100, upMs: undefined }
    expect(evaluated(threads, unknown)).toMatchObject([missing, missing, missing])
    expect(evaluated(threads, { letsInEverybody: false, ...healthy, max: undefined })).toMatchObject([
      missing,
      missing,
      { status: 'ok' },
    ])
    const transaction = { open: undefined, maxMs: undefined, thread: undefined }
    expect(evaluated(transactions, transaction)[0]).toMatchObject(missing)
    expect(evaluated(transactions, { ...transaction, open: 1 })[0]).toMatchObject(missing)
    expect(evaluated(galera, { ...synced, on: '' })[0]).toMatchObject(missing)
    expect(evaluated(galera, { ...synced, answered: false, provider: '', on: '' })[0]).toMatchObject(missing)
  })
  test('MariaDB: each server gets the statements of its own version', () => {
    expect(replicationStatement('10.11.19-MariaDB-0+deb12u1')).toBe('SHOW ALL SLAVES STATUS')
    expect(replicationStatement('8.0.21')).toBe('SHOW SLAVE STATUS')
    expect(replicationStatement('8.0.22')).toBe('SHOW REPLICA STATUS')
    expect(replicationStatement('8.4.0-commercial')).toBe('SHOW REPLICA STATUS')
    expect(replicationStatement('5.7.44-log')).toBe('SHOW SLAVE STATUS')
  })
})
