import { expect, test } from 'vitest'
import { inNamespace, missingNamespace } from '../../support/faults/network.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const script = new URL('../../support/faults/no-route-child.ts', import.meta.url)

peerSuite(missingNamespace(), 'a machine without a route for IPv6', () => {
  test('H83 every kind that takes a host is not checked with family: ipv6, because this machine has no route', async () => {
    const results = (await inNamespace(script)) as Record<string, unknown>
    const message = 'not checked: this machine has no route for IPv6 to 2001:db8::7 (ENETUNREACH)'
    expect(results).toEqual(Object.fromEntries(Object.keys(results).map((name) => [name, [['route', message]]])))
    expect(Object.keys(results).length).toBeGreaterThan(15)
  }, 60_000)
})
