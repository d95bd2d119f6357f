import { beforeAll, expect, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { inNamespace, missingNamespace } from '../../support/faults/network.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const script = new URL('../../support/faults/no-network-child.ts', import.meta.url)

peerSuite(missingNamespace(), 'dns on a machine without a network', () => {
  let results: {
    readonly 'no network': Result
    readonly 'nothing listens': Result
    readonly serial: readonly string[]
    readonly resolved: string
  }
  beforeAll(async () => {
    results = (await inNamespace(script)) as typeof results
  }, 60_000)

  test('a name server that cannot be reached is not blamed: the machine has no network', () => {
    expectResult(
      results['no network'],
      'failed (refused): no route to 192.0.2.53: this machine has no network, because no interface but loopback has an address',
      { details: ['ENETUNREACH'] },
    )
  })

  test('a port without a name server on the same machine is still reported as that', () => {
    expect(results['nothing listens'].message).toMatch(
      /^127\.0\.0\.1:\d+ refused the query after .*: host up, no name server/,
    )
  })

  test('a name that a monitor connects to does not resolve, because no name server can be reached', () => {
    expect(results.resolved).toBe(
      'app.test does not resolve: this machine reaches none of its name servers, or all of them refuse queries',
    )
  })

  test('name servers without a route fail the check of their serials, and do not end the process', () => {
    expect(results.serial.join(' ')).toContain('no route to 192.0.2.53')
  })
})
