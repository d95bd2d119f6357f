import { expect, test } from 'vitest'
import { blackHole, peer, replies } from '../support/faults/faults.ts'
import type { Certificates, ServerCertificate } from '../support/servers/certs.ts'
import { callWith, clientOf, faultOf, healthAt } from './asking.ts'
import { at, caFile, made, serve, withCertificates } from './tls-peers.ts'

withCertificates()

test('K5 --ca-file makes a private authority trusted, by address and by name', async () => {
  await using server = await serve(made.good)
  expect((await healthAt(at(server), {}, { caFile })).Status).toBe('Success')
  expect((await healthAt(at(server, 'localhost'), {}, { caFile })).Status).toBe('Success')
})

test('K5 a self-signed certificate is trusted only through --ca-file', async () => {
  await using server = await serve(made.selfSigned)
  expect((await healthAt(at(server), {}, { caFile: made.selfSignedFile })).Status).toBe('Success')
  const fault = await faultOf(healthAt(at(server)))
  expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
  expect(fault.message).toContain('self-signed (DEPTH_ZERO_SELF_SIGNED_CERT)')
  expect(fault.details.hints?.at(-1)).toContain('--ca-file')
})

const failures: readonly (readonly [string, (c: Certificates) => ServerCertificate, boolean, RegExp])[] = [
  [
    'of an unknown authority',
    (c) => c.good,
    false,
    /the issuer of its certificate is not trusted .*\(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_/,
  ],
  ['without its intermediate', (c) => c.withoutIntermediate, true, /the issuer of its certificate is not trusted/],
  ['that has expired', (c) => c.expired, true, /has expired \(CERT_HAS_EXPIRED\)/],
  ['whose issuer has expired', (c) => c.expiredIntermediate, true, /has expired/],
  ['of tomorrow', (c) => c.notYetValid, true, /not valid yet/],
  ['for another host', (c) => c.otherHost, true, /for another name: .*elsewhere\.test/],
]
test.each(failures)(
  'K5 certificates are always checked: one %s is exit 6 and no request is sent',
  async (_, of, ca, words) => {
    await using server = await serve(of(made))
    const fault = await faultOf(healthAt(at(server, 'localhost'), {}, ca ? { caFile } : {}))
    expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
    expect(fault.message).toMatch(words)
    expect(fault.details.hints?.length).toBeGreaterThan(0)
    expect(server.input()).toBe('')
  },
)

test('TLS older than 1.2 is refused', async () => {
  await using server = await serve({ ...made.good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' })
  const fault = await faultOf(healthAt(at(server), {}, { caFile }))
  expect(fault.fault).toBe('Unreachable')
  expect(fault.message).toContain('TLS with')
})

test('a port that does not use TLS is reported as such, and so is one that requires TLS', async () => {
  await using plain = await peer(replies('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const notTls = await faultOf(healthAt(at(plain)))
  expect([notTls.fault, notTls.exitCode]).toEqual(['Unreachable', 6])
  expect(notTls.message).toContain('does not use TLS')
  expect(notTls.details.hints?.at(-1)).toContain('http://')
  await using secure = await serve(made.good)
  const notPlain = await faultOf(healthAt(secure.port))
  expect(notPlain.exitCode).toBe(8)
  expect(notPlain.details.hints?.join(' ')).toContain('https://')
})

test('a handshake that never completes ends at the deadline, and one that is cut is exit 6', async () => {
  await using mute = await peer(blackHole)
  const late = await faultOf(healthAt(at(mute), { timeoutMs: 200 }))
  expect(late.message).toMatch(/did not finish the TLS handshake/)
  expect(late.exitCode).toBe(7)
  await using cut = await peer(replies(''))
  const fault = await faultOf(healthAt(at(cut)))
  expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
  expect(fault.message).toContain('in the TLS handshake')
})

test('a POST is sent once, whichever list of authorities is needed', async () => {
  await using server = await serve(made.good)
  const client = clientOf(at(server))
  await faultOf(client.assignRoles({ UserName: 'bob' }, callWith()))
  expect(server.input()).toBe('')
  await clientOf(at(server), { caFile }).assignRoles({ UserName: 'bob' }, callWith())
  expect(server.input().match(/POST /g)).toHaveLength(1)
})
