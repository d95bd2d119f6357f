import { describe, expect, test } from 'vitest'
import { Fault, StoreOutage } from '../../src/core/base/errors.ts'
import {
  NoConnection,
  NotCommitted,
  openingFault,
  ReadOnlyHost,
  runningFault,
} from '../../src/core/store/postgres/faults.ts'
import { postgresTarget } from '../../src/core/store/postgres/url.ts'

const store = 'postgres://svc@db1.example.com,db2.example.com/svc'
const withCode = (code: string, message = 'simulated') => Object.assign(new Error(message), { code })

describe('W16 simulated errors while the store is opened', () => {
  const outages: readonly (readonly [string, Error, string])[] = [
    ['refused', withCode('ECONNREFUSED'), 'cannot be reached'],
    ['no route', withCode('EHOSTUNREACH'), 'cannot be reached'],
    ['no network', withCode('ENETUNREACH'), 'cannot be reached'],
    ['a timeout of the system', withCode('ETIMEDOUT'), 'cannot be reached'],
    ['no answer', new NoConnection(), 'cannot be reached'],
    ['a reset connection', withCode('ECONNRESET'), 'cannot be reached'],
    ['no socket', withCode('ENOENT'), 'cannot be reached'],
    ['a name server that does not answer', withCode('EAI_AGAIN'), 'cannot be reached'],
    ['a shutdown', withCode('57P01'), 'cannot be reached'],
    ['the database system is starting up', withCode('57P03'), 'accepts no connections at the moment'],
    ['too many connections', withCode('53300'), 'accepts no more connections'],
    ['out of memory', withCode('53200'), 'is out of resources at the moment'],
    ['a disk that is full', withCode('53100'), 'cannot be written: its disk is full'],
    ['a lock', withCode('55P03'), 'does not answer in time'],
    ['no server that accepts writes', new ReadOnlyHost(), 'is on no server that accepts writes'],
  ]
  test.each(outages)(
    'W16 %s is an outage, which names the store for people and not for callers',
    async (_, error, why) => {
      const fault = openingFault(error, await postgresTarget(store, {}))
      if (!(fault instanceof StoreOutage)) throw fault
      expect([fault.fault, fault.exitCode, fault.why, fault.details.retryAfter]).toEqual(['Unavailable', 8, why, 5])
      expect(fault.message).toContain(`The store ${store} ${why}`)
      expect(new StoreOutage(fault.why, {}).message).toBe(`The store ${why}`)
    },
  )

  const mistakes: readonly (readonly [string, Error, number, RegExp])[] = [
    [
      'a name that does not exist',
      withCode('ENOTFOUND'),
      8,
      /there is no host db1\.example\.com or db2\.example\.com$/,
    ],
    ['a socket that this account may not use', withCode('EACCES'), 8, /no permission to use/],
    ['a wrong password', withCode('28P01'), 12, /rejects the password of svc$/],
    ['an account without access', withCode('28000'), 12, /does not allow svc to connect/],
    ['a database that does not exist', withCode('3D000'), 12, /there is no database svc$/],
    ['no permission', withCode('42501'), 12, /does not allow svc to create or use its tables$/],
    ['a certificate that is not trusted', withCode('SELF_SIGNED_CERT_IN_CHAIN'), 12, /trusted connection/],
  ]
  test.each(mistakes)('W16 %s is a mistake, with a remedy', async (_, error, code, text) => {
    const fault = openingFault(error, await postgresTarget(store, {}))
    expect(fault).not.toBeInstanceOf(StoreOutage)
    if (!(fault instanceof Fault)) throw fault
    expect([fault.exitCode, fault.message]).toEqual([code, expect.stringMatching(text)])
    expect(fault.details.hints).toHaveLength(1)
  })
})

test.each([
  ['nothing arrived in time', new NoConnection(), 'does not answer in time'],
  ['a statement had no answer in time', new Error('Query read timeout'), 'does not answer in time'],
  ['a statement took too long', withCode('57014'), 'does not answer in time'],
  ['the connection broke', withCode('ECONNRESET'), 'cannot be reached'],
  ['the connection broke before COMMIT', new NotCommitted(), 'cannot be reached'],
  ['nothing listens', withCode('ECONNREFUSED'), 'cannot be reached'],
  ['the database system is starting up', withCode('57P03'), 'accepts no connections at the moment'],
  ['too many connections', withCode('53300'), 'accepts no more connections'],
])(
  'W16 an open store that is late, one that cannot be reached and one that refuses differ in their reasons: %s',
  (_, error, why) => {
    expect(runningFault(error).message).toBe(`The store ${why}`)
  },
)
