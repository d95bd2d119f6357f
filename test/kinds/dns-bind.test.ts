// @module-tag peers
import { afterAll, beforeAll, expect, test } from 'vitest'
import dns from '../../src/core/kinds/dns.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { type Bind, bindMissing, startBind } from '../support/bind.ts'
import { peerSuite } from '../support/peer.ts'
import { checked, runKind } from '../support/run-kind.ts'

type Settings = Parameters<typeof runKind<typeof dns.settings>>[1]

peerSuite(bindMissing, 'dns with a real BIND', () => {
  let server: Bind
  beforeAll(async () => {
    server = await startBind({ serial: 7 })
  })
  afterAll(async () => await server?.remove())

  const run = (settings: Settings, mode: ExecutionMode = 'Advanced') =>
    runKind(dns, { server: server.server, ...settings }, mode)

  test('an alias of a name that does not exist is reported with both names', async () => {
    for (const query of ['dangling.svc.test', 'chain.svc.test']) {
      const result = checked(await run({ query }, 'Basic'), 'answer')
      expect(result).toMatchObject({ status: 'failed', fault: 'dns' })
      expect(result.message).toBe(
        `${server.server} reports that ${query} is an alias of gone.svc.test, which does not exist (NXDOMAIN)`,
      )
    }
    expect(checked(await run({ query: 'empty.svc.test' }, 'Basic'), 'answer').message).toBe(
      `${server.server} reports that empty.svc.test is an alias of texts.svc.test, which has no A record`,
    )
    expect(checked(await run({ query: 'gone.svc.test' }, 'Basic'), 'answer').message).toBe(
      `${server.server} reports that gone.svc.test does not exist (NXDOMAIN)`,
    )
  })
  test('an empty list of expected records is a mistake in svc.yaml', () => {
    const wrong = (expect: readonly string[]) => dns.validate?.({ query: 'a.test', type: 'A', expect } as never)
    expect(wrong([])).toBe('expect is empty: list the records, or remove it')
    expect(wrong(['192.0.2.1'])).toBeUndefined()
  })
})
