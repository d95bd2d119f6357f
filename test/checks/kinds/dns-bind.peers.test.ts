import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import dns from '../../../src/core/checks/kinds/dns.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { type Bind, type BindOptions, bindMissing, startBind } from '../../support/servers/bind.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Settings = Parameters<typeof runKind<typeof dns.settings>>[1]

peerSuite(bindMissing, 'dns with a real BIND', () => {
  let server: Bind
  beforeAll(async () => {
    server = await startBind({ serial: 7 })
  })
  afterAll(async () => await server?.remove())

  const run = (settings: Settings, mode: ExecutionMode = 'Advanced') =>
    runKind(dns, { server: server.server, ...settings }, mode)

  test('H19 H71 a name server passes with an alias of another zone, and names a referral, a loop, and hosts without an address', async () => {
    const records = [
      'cdn CNAME edge.cdn.example.',
      'loop CNAME back',
      'back CNAME loop',
      'sub NS ns.sub',
      'mx MX 5 gone',
    ]
    const zone = await startBind({ records: [...records, 'ns.sub A 192.0.2.53'], signedForDays: 20 })
    onTestFinished(() => zone.remove())

    const look = async (query: string, settings: Partial<Settings> = {}) =>
      await run({ query: `${query}.svc.test`, server: zone.server, ...settings } as Settings, 'Standard')
    await finds(look('cdn'), 'answer ok: cdn.svc.test is an alias of edge.cdn.example, which is in another zone')
    for (const settings of [{ records: { limit: 1 } }, { expect: ['192.0.2.1'] }]) {
      const [, , undecided] = await look('cdn', settings)
      expect(undecided).toMatchObject({ status: 'failed', notChecked: 'missing' })
    }
    await finds(look('loop'), 'answer: …loop.svc.test is an alias of itself: loop…')
    await finds(look('www.sub'), 'answer: …refers to ns.sub.svc.test for sub.svc.test…')
    await finds(
      look('mx', { type: 'MX' }),
      'targets failed (dns): mx.svc.test MX names gone.svc.test, which has no address',
    )
  })

  test('an empty list of expected records is a mistake in svc.yaml', () => {
    const invalid = (expect: readonly string[]) => dns.validate?.({ query: 'a.test', type: 'A', expect } as never)
    expect(invalid([])).toBe('expect is empty: list the records, or remove it')
    expect(invalid(['192.0.2.1'])).toBeUndefined()
  })

  test('name servers of a zone with the same serial are ok, and a late one is a warning with its serial', async () => {
    const late = await startBind({ serial: 4 })
    const same = await startBind({ serial: 7 })
    onTestFinished(async () => {
      await late.remove()
      await same.remove()
    })

    const serial = async (nameServers: readonly string[], type: 'SOA' | 'A' = 'SOA') =>
      checked(await run({ query: 'svc.test', type, nameServers }), 'serial')
    expect(await serial([server.server, same.server])).toMatchObject({
      status: 'ok',
      message: 'zone svc.test has the serial 7 at 2 name servers',
      measurement: { value: 0, unit: 'count' },
    })
    const differs = await serial([server.server, late.server])
    expectResult(
      differs,
      'warning: zone svc.test has the serials 7, 4 at 2 name servers: a zone transfer is late or fails',
      { measurement: { value: 3 }, details: [`${server.server}: serial 7`, `${late.server}: serial 4`] },
    )
    await late.stop('SIGTERM')
    expect(await serial([server.server, late.server])).toMatchObject({
      status: 'warning',
      message: '1 name server of 2 of zone svc.test did not report a serial',
      details: [`${server.server}: serial 7`, expect.stringContaining('no serial (ECONNREFUSED)')],
    })
    expect(await serial([late.server])).toMatchObject({ status: 'failed', notChecked: 'missing' })
    // Without nameServers: those in the NS records, at port 53, where nothing listens here.
    const result = checked(await run({ query: 'svc.test', type: 'NS' }), 'serial')
    expect(result.details).toEqual([expect.stringContaining('127.0.0.1: no serial')])
  })

  test('the first signature to expire decides, in days', async () => {
    const signatures = async (options: BindOptions, settings: Partial<Settings> = {}) => {
      const signed = await startBind(options)
      try {
        const results = await run({ query: 'www.svc.test', server: signed.server, ...settings } as Settings)
        return results.find(({ check }) => check === 'signatures')
      } finally {
        await signed.remove()
      }
    }
    const sound = await signatures({ signedForDays: 20.5 })
    expect(sound).toMatchObject({ status: 'ok', measurement: { value: 20.4, unit: 'days', warn: 7, limit: 2 } })
    expect(sound?.message).toMatch(/^1 signature of www\.svc\.test A: the first expires on .* UTC, in 20\.4 d/)
    expect(await signatures({ signedForDays: 5 })).toMatchObject({ status: 'warning' })
    expect(await signatures({ signedForDays: 1 })).toMatchObject({ status: 'failed', fault: 'threshold' })
    const expired = await signatures({ signedForDays: -3 })
    expect(expired).toMatchObject({ status: 'failed', fault: 'data', measurement: { value: -3.1, warn: 7, limit: 2 } })
    expect(expired?.message).toMatch(/^a signature of www\.svc\.test A expired on .* UTC, 3 d ago: resolvers/)
    const early = await signatures({ signedForDays: 20, signedSinceDays: -1 })
    expect(early).toMatchObject({ status: 'failed', fault: 'data' })
    expect(early?.message).toContain('is valid only from')
    // An unsigned zone has nothing to expire, unless it must be signed.
    expect(await signatures({})).toBeUndefined()
    expect(await signatures({}, { signed: true })).toMatchObject({ status: 'failed', fault: 'data' })
  })
})
