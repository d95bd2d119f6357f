import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { limits } from '../../../src/core/checks/engine/index.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import { finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { dedicated, probe, type Slapd, slapdMissing, startSlapd, suffix } from '../../support/servers/slapd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Settings = Parameters<typeof runKind<typeof ldap.settings>>[1]
const account = { username: probe.user, password: secret(probe.password) }
const levels = (results: readonly { readonly check: string; readonly status: string }[]) =>
  results.map(({ check, status }) => `${check} ${status}`)

peerSuite(slapdMissing ?? opensslMissing(), 'ldap with a real OpenLDAP', () => {
  let server: Slapd
  let certs: Certificates
  beforeAll(async () => {
    certs = makeCertificates()
    server = await startSlapd({
      tls: certs.good,
      database: [
        'access to attrs=userPassword by anonymous auth by * none',
        `access to dn.base="ou=people,${suffix}" by anonymous none by * read`,
        'access to * by * read',
      ],
    })
  }, 60_000)
  afterAll(async () => {
    await server?.remove()
    certs?.remove()
  })
  const whole = () => ({
    ...account,
    caFile: certs.caFile,
    base: suffix,
    entry: { filter: '(uid=probe)', atLeast: 1 },
    lastChange: { limit: 86_400_000 },
    refusesWrongPassword: { username: dedicated.user, password: secret(dedicated.password) },
  })
  const gone = () => expect.poll(() => server.open()).toBe(0)

  test('Basic connects and reads the root entry, without a sign-in', async () => {
    const binds = server.logged(/ BIND dn=/)
    const results = await runKind(ldap, { url: server.url, ...account })
    expect(levels(results)).toEqual(['connect ok', 'rootDSE ok'])
    await finds(results, `rootDSE: …LDAP 3; ${suffix}…`)
    expect(server.logged(/ BIND dn=/)).toBe(binds)
    await gone()
  })

  test('Standard signs in and finds the base that the server names', async () => {
    const results = await runKind(ldap, { url: server.url, ...account }, 'Standard')
    expect(levels(results)).toEqual(['connect ok', 'bind ok', 'rootDSE ok', 'search ok'])
    await finds(results, `search: …"${suffix}" found in…`)
    await gone()
  })

  test.each(['plain', 'StartTLS', 'ldaps'])('Advanced runs all checks, %s', async (how) => {
    const settings = { ...whole(), url: how === 'ldaps' ? server.ldaps : server.url, startTls: how === 'StartTLS' }
    const results = await runKind(ldap, settings, 'Advanced')
    expect(levels(results)).toEqual([
      'connect ok',
      ...(how === 'plain' ? [] : ['certificate ok']),
      'bind ok',
      'rootDSE ok',
      'search ok',
      'entry ok',
      'last change ok',
      'wrong password ok',
    ])
    await finds(results, 'wrong password: …and accepted the correct one…')
    await gone()
  })

  test('a wrong password is refused once, without a retry, and shown nowhere', async () => {
    const before = server.logged(/ BIND dn=/)
    const [shared, password] = [limits(), secret('entirely wrong')]
    const settings = { url: server.url, username: probe.user, password }
    const results = await runKind(ldap, settings, 'Standard', { retries: 3, limits: shared })
    await finds(results, 'bind failed (auth)')
    expect(JSON.stringify(results)).not.toContain('entirely wrong')
    const again = await runKind(ldap, settings, 'Standard', { limits: shared })
    expect(levels(again)).toEqual(['sign-in failed'])
    await finds(again, ['sign-in', /^refused: wrong name or password \(invalidCredentials\) /])
    await expect.poll(() => server.logged(/ BIND dn=/)).toBe(before + 1)
    await gone()
  })

  test('the dedicated account without its password only gets a wrong one', async () => {
    const settings = { url: server.url, ...account, refusesWrongPassword: { username: dedicated.user } }
    await finds(runKind(ldap, settings, 'Advanced'), [
      'wrong password ok',
      /refused a wrong password for "uid=dedicated[^"]+"$/,
    ])
    const mistaken = { username: dedicated.user, password: secret('mistaken too') }
    await finds(
      runKind(ldap, { ...settings, refusesWrongPassword: mistaken }, 'Advanced'),
      'wrong password failed (auth)',
    )
    await gone()
  })

  test('missing, hidden and malformed entries are distinguished', async () => {
    const search = async (base: string, settings: Settings = account) =>
      checked(await runKind(ldap, { url: server.url, base, ...settings }, 'Standard'), 'search')
    expect(await search(`ou=nowhere,${suffix}`)).toMatchObject({ status: 'failed', fault: 'data' })
    expect((await search(`ou=nowhere,${suffix}`)).message).toContain('has no such entry (noSuchObject)')
    expect((await search('no name at all')).message).toContain('does not accept that as a distinguished name')
    expect((await search(`ou=people,${suffix}`, {})).message).toContain('noSuchObject')
    expect((await search(`ou=people,${suffix}`)).status).toBe('ok')
    await gone()
  })

  test('a search that finds too little, and an invalid filter, do not hide other results', async () => {
    const entry = (filter: string, atLeast = 1) => ({ url: server.url, ...account, entry: { filter, atLeast } })
    await finds(
      runKind(ldap, { ...entry('(objectClass=inetOrgPerson)', 3), lastChange: { limit: 86_400_000 } }, 'Advanced'),
      ['entry failed (data)', { measurement: { value: 2, limit: 3 } }],
      'last change ok',
    )
    await finds(runKind(ldap, entry('(uid=)('), 'Advanced'), 'entry: …is not valid: write it in the form (uid=alice)…')
    await finds(runKind(ldap, entry('(objectClass=*)', 2), 'Advanced'), ['entry ok', { measurement: { value: 2 } }])
    await gone()
  })

  test('a certificate of an unknown CA, or for another name, is a TLS fault before anything is sent', async () => {
    const binds = server.logged(/ BIND dn=/)
    for (const settings of [{ url: server.ldaps }, { url: server.url, startTls: true }]) {
      await findsOnly(runKind(ldap, { ...settings, ...account }, 'Standard'), 'connect failed (tls)')
      const other = { ...settings, ...account, caFile: certs.caFile, servername: 'elsewhere.test' }
      expect(await runKind(ldap, other, 'Standard')).toMatchObject([
        { check: 'connect', fault: 'tls', message: expect.stringContaining('not for elsewhere.test') },
      ])
    }
    expect(server.logged(/ BIND dn=/)).toBe(binds)
    await gone()
  })

  test('a slow sign-in warns', async () => {
    await finds(runKind(ldap, { url: server.url, ...account, latency: { warn: 0 } }, 'Standard'), 'bind warning')
    await gone()
  })
})

peerSuite(slapdMissing, 'ldap with a real OpenLDAP that demands more', () => {
  test('anonymous callers without access, and passwords that may not be readable', async () => {
    const server = await startSlapd({ global: ['require authc', 'security simple_bind=128'] })
    onTestFinished(() => server.remove())

    const basic = await runKind(ldap, { url: server.url })
    expect(levels(basic)).toEqual(['connect ok', 'rootDSE ok'])
    await finds(
      runKind(ldap, { url: server.url, ...account }, 'Standard'),
      'bind failed (data): …use ldaps:// or startTls (confidentialityRequired)…',
    )
    const tls = await runKind(ldap, { url: server.url, startTls: true })
    expect(tls[0]).toMatchObject({ check: 'connect', fault: 'tls' })
  })
})

peerSuite(slapdMissing, 'ldap with the privileges that the reference lists', () => {
  test('an account of a real OpenLDAP that has only these passes all checks', async () => {
    const server = await startSlapd({
      global: ['access to dn.base="" by * read'],
      database: [
        'access to attrs=userPassword by anonymous auth',
        `access to dn.base="${suffix}" attrs=entry,objectClass,contextCSN by dn.exact="${probe.user}" read`,
        `access to dn.subtree="ou=people,${suffix}" attrs=entry,uid by dn.exact="${probe.user}" read`,
        'access to * by * none',
      ],
    })
    onTestFinished(() => server.remove())

    const settings = {
      url: server.url,
      ...account,
      base: suffix,
      entry: { filter: '(uid=probe)', base: `ou=people,${suffix}`, atLeast: 1 },
      lastChange: { limit: 86_400_000 },
    }
    expect(levels(await runKind(ldap, settings, 'Advanced'))).toEqual([
      'connect ok',
      'bind ok',
      'rootDSE ok',
      'search ok',
      'entry ok',
      'last change ok',
    ])
  })
})
