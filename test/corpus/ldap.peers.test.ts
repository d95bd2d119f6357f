import { execFileSync } from 'node:child_process'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { dedicated, probe, type Slapd, slapdMissing, startSlapd, suffix } from '../support/servers/slapd.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, notChecked, type Row } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const env = { PROBE: probe.password, DEDICATED: dedicated.password, WRONG: 'another password' }
const account = { username: probe.user, password: { env: 'PROBE' } }

type Servers = { readonly good: Slapd; readonly expired: Slapd; readonly otherHost: Slapd }

const secure =
  (name: keyof Servers, more: object = {}) =>
  (servers: Servers) => ({ kind: 'ldap', url: servers[name].ldaps, caFile: certificates?.caFile, ...account, ...more })
const askLdap =
  (name: keyof Servers, base = suffix) =>
  (servers: Servers): readonly PeerProgram[] => [
    { program: 'check_ldap', args: ['-H', '127.0.0.1', '-p', String(servers[name].port), '-b', base, '-3', '-t', '3'] },
  ]

/** One account does not see the number of the newest change. */
const access = [
  'access to attrs=userPassword by anonymous auth',
  `access to dn.base="${suffix}" attrs=contextCSN by dn.exact="${dedicated.user}" none by * read`,
  'access to * by * read',
]

const rows: readonly Row<Servers>[] = [
  {
    fault: 'healthy over LDAPS',
    monitor: secure('good', {
      base: suffix,
      entry: { filter: '(objectClass=inetOrgPerson)', atLeast: 2 },
      lastChange: '1d',
      refusesWrongPassword: { username: dedicated.user, password: { env: 'DEDICATED' } },
    }),
    expected: { state: 'healthy' },
    peers: askLdap('good'),
  },
  {
    fault: 'healthy with StartTLS',
    monitor: ({ good }) => ({ kind: 'ldap', url: good.url, startTls: true, caFile: certificates?.caFile, ...account }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the password was changed',
    monitor: secure('good', { password: { env: 'WRONG' } }),
    expected: fails('bind', 'auth', /refused|invalid credentials/i),
    peers: ({ good }) => [
      {
        program: 'check_ldap',
        args: ['-H', '127.0.0.1', '-p', String(good.port), '-b', suffix, '-3', '-D', probe.user, '-P', 'wrong'],
      },
    ],
  },
  {
    fault: 'the base entry is missing',
    monitor: secure('good', { base: `ou=machines,${suffix}` }),
    expected: fails('search', 'data', /ou=machines/),
    peers: askLdap('good', `ou=machines,${suffix}`),
  },
  {
    fault: 'entries are missing',
    monitor: secure('good', { base: suffix, entry: { filter: '(objectClass=inetOrgPerson)', atLeast: 5 } }),
    expected: fails('entry', 'any', /\b2\b.*\b5\b/),
    peers: askLdap('good'),
  },
  {
    fault: 'the account may not read the last change, which svc.yaml limits',
    monitor: secure('good', {
      username: dedicated.user,
      password: { env: 'DEDICATED' },
      base: suffix,
      lastChange: '1d',
    }),
    expected: notChecked('last change', /no contextCSN: .*this account may not read it/),
    before: 'warning, exit code 0',
  },
  { fault: 'an expired certificate', monitor: secure('expired'), expected: fails('connect', 'tls', /expired/) },
  {
    fault: 'a certificate for another name',
    monitor: secure('otherHost'),
    expected: fails('connect', 'tls', /elsewhere\.test/),
  },
  {
    fault: 'LDAPS at the plain port',
    monitor: ({ good }) => ({ kind: 'ldap', url: good.url.replace('ldap:', 'ldaps:'), ...account }),
    expected: fails('connect', 'tls', /TLS/),
  },
  {
    fault: 'the server is frozen',
    monitor: secure('good', { timeout: '2s' }),
    plant: async ({ good }) => {
      good.freeze()
      return good.thaw
    },
    expected: fails('connect', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
    peers: askLdap('good'),
  },
  {
    fault: 'nothing listens on the port',
    monitor: () => ({ kind: 'ldap', url: 'ldap://127.0.0.1:1' }),
    expected: fails('connect', 'refused', /refused/),
    peers: () => [{ program: 'check_ldap', args: ['-H', '127.0.0.1', '-p', '1', '-b', suffix, '-3'] }],
  },
]

const version = (): string =>
  /slapd ([\d.]+)/.exec(execFileSync('sh', ['-c', '/usr/sbin/slapd -VV 2>&1 || true'], { encoding: 'utf8' }))?.[1] ?? ''

corpus<Servers>({
  server: slapdMissing === undefined ? `OpenLDAP ${version()}` : 'OpenLDAP',
  env,
  missing: slapdMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const { good, expired, otherHost } = certificates
    return {
      good: await startSlapd({ tls: good, database: access }),
      expired: await startSlapd({ tls: expired }),
      otherHost: await startSlapd({ tls: otherHost }),
    }
  },
  stop: async ({ good, expired, otherHost }) => {
    good.thaw()
    for (const server of [good, expired, otherHost]) await server.remove()
  },
  rows,
})
