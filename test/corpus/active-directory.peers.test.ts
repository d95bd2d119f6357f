import { execFileSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import {
  accountFaults,
  type Domain,
  dedicated,
  domainBase,
  reader,
  sambaMissing,
  startDomain,
} from '../support/servers/samba.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = sambaMissing === undefined && opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const changed = 'An-0ther-of-tests'
const env = { READER: reader.password, DEDICATED: dedicated.password, WRONG: 'not-the-Passw0rd', CHANGED: changed }

const signIn =
  (more: object = {}) =>
  ({ first }: Domain) => ({
    kind: 'ldap',
    url: first.ldaps,
    servername: 'svc.test',
    caFile: certificates?.caFile,
    username: reader.user,
    password: { env: 'READER' },
    ...more,
  })
const ask =
  (password = reader.password, base = domainBase) =>
  ({ first: { address } }: Domain): readonly PeerProgram[] => [
    {
      program: 'check_ldap',
      args: ['-H', address.replace(/:\d+$/, ''), '-3', '-b', base, '-D', reader.user, '-P', password, '-t', '4'],
    },
  ]
const restored =
  ({ tool }: Domain) =>
  () =>
    tool('user', 'setpassword', 'reader', `--newpassword=${reader.password}`)

const rows: readonly Row<Domain>[] = [
  {
    fault: 'healthy, with a partner',
    monitor: ({ second }) => ({
      kind: 'ldap',
      url: second.url,
      username: reader.user,
      password: { env: 'READER' },
      base: domainBase,
      entry: { filter: '(sAMAccountName=reader)' },
      refusesWrongPassword: { username: dedicated.user, password: { env: 'DEDICATED' } },
    }),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  { fault: 'healthy over LDAPS', mode: 'Standard', monitor: signIn(), expected: { state: 'healthy' }, peers: ask() },
  {
    fault: 'the password was changed',
    monitor: signIn({ password: { env: 'WRONG' } }),
    expected: fails('bind', 'auth', /wrong password/, { never: /locked|expired/ }),
    peers: ask('wrong'),
  },
  {
    fault: 'the account is locked',
    monitor: signIn(),
    plant: async (domain) => {
      domain.tool(...accountFaults.locksAfterThree)
      for (let round = 0; round < 4; round += 1) await refusedSignIn(domain)
      return () => {
        domain.tool('user', 'unlock', 'reader')
        domain.tool(...accountFaults.neverLocks)
      }
    },
    expected: fails('bind', 'auth', /the account is locked/, { never: /wrong pass/ }),
    peers: ask(),
  },
  {
    fault: 'the account is disabled',
    monitor: signIn(),
    plant: async ({ tool }) => {
      tool(...accountFaults.disabled)
      return () => tool('user', 'enable', 'reader')
    },
    expected: fails('bind', 'auth', /the account is disabled/, { never: /wrong pass/ }),
    peers: ask(),
  },
  {
    fault: 'the account has expired',
    monitor: signIn(),
    plant: async ({ tool }) => {
      tool('user', 'setexpiry', 'reader', '--days=-1')
      // --noexpiry would make the password unlimited too.
      return () => tool('user', 'setexpiry', 'reader', '--days=1000')
    },
    expected: fails('bind', 'auth', /the account has expired/, { never: /wrong pass/ }),
    peers: ask(),
  },
  {
    fault: 'the password has expired',
    monitor: signIn(),
    plant: async (domain) => {
      // Samba's passwords last 42 days.
      domain.agePassword(50)
      return restored(domain)
    },
    expected: fails('bind', 'auth', /the password has expired/, { never: /wrong pass/ }),
    peers: ask(),
  },
  {
    fault: 'the password must be changed first',
    monitor: signIn({ password: { env: 'CHANGED' } }),
    plant: async (domain) => {
      domain.tool(...accountFaults.mustChange)
      return restored(domain)
    },
    expected: fails('bind', 'auth', /must be changed first/, { never: /wrong pass/ }),
    peers: ask(changed),
  },
  {
    fault: 'the password expires in 10 days',
    mode: 'Standard',
    monitor: signIn(),
    plant: async ({ tool }) => {
      tool(...accountFaults.expiresIn(10))
      return () => tool(...accountFaults.expiresIn(42))
    },
    expected: warns('password expiry', /expires in (?:10|9(?:\.\d+)?) d/),
    peers: ask(),
  },
  {
    fault: 'the password expires in 2 days',
    mode: 'Standard',
    monitor: signIn(),
    plant: async ({ tool }) => {
      tool(...accountFaults.expiresIn(2))
      return () => tool(...accountFaults.expiresIn(42))
    },
    expected: fails('password expiry', 'threshold', /expires in (?:2 d|4\d)/),
    peers: ask(),
  },
  {
    fault: 'the base entry is missing',
    mode: 'Standard',
    monitor: signIn({ base: `OU=Machines,${domainBase}` }),
    expected: fails('search', 'data', /OU=Machines/),
    peers: ask(reader.password, `OU=Machines,${domainBase}`),
  },
  {
    fault: 'a group is missing',
    monitor: signIn({ entry: { filter: '(&(objectClass=group)(cn=Operators of svc))' } }),
    expected: fails('entry', 'data', /finds nothing for/),
    peers: ask(),
  },
  {
    fault: 'the controller receives nothing from the other one',
    monitor: signIn(),
    expected: warns('replication', /no partner.*2 domain controllers/),
    peers: ask(),
  },
  {
    fault: 'an anonymous search',
    mode: 'Standard',
    monitor: ({ first }) => ({ kind: 'ldap', url: first.url, base: domainBase }),
    expected: fails('search', 'data', /without an account.*before a sign-in/),
    peers: ({ first: { address } }) => [
      { program: 'check_ldap', args: ['-H', address.replace(/:\d+$/, ''), '-3', '-b', domainBase, '-t', '4'] },
    ],
  },
  {
    fault: 'an expired certificate',
    monitor: ({ second, ...domain }) => signIn({ url: second.ldaps })({ second, ...domain }),
    expected: fails('connect', 'tls', /expired/),
  },
  {
    fault: 'the controller is frozen',
    monitor: signIn({ timeout: '2s' }),
    plant: async ({ freezeFirst, thawFirst }) => {
      freezeFirst()
      return thawFirst
    },
    expected: fails('connect', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
    peers: ask(),
  },
  {
    fault: 'the controller is stopped',
    monitor: signIn(),
    plant: async ({ stopFirst }) => {
      stopFirst()
      // The kernel closes its ports a moment later.
      await pause(1_000)
      return undefined
    },
    expected: fails('connect', 'refused', /refused/),
    peers: ask(),
  },
]

/** A sign-in with a wrong password, which the controller counts. */
async function refusedSignIn({ first }: Domain): Promise<void> {
  const { Client } = await import('ldapts')
  const client = new Client({ url: first.url })
  await client.bind(reader.user, env.WRONG).catch(() => {})
  await client.unbind()
}

const version = (): string =>
  / [\d.]+\d/.exec(execFileSync('sh', ['-c', 'samba --version'], { encoding: 'utf8' }))?.[0] ?? ''

corpus<Domain>({
  server: `Samba${sambaMissing === undefined ? version() : ''} as Active Directory`,
  env,
  missing: sambaMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const { good, expired } = certificates
    const domain = await startDomain({ controllers: 2, certificates: [good, expired] })
    domain.tool(...accountFaults.neverLocks)
    return domain
  },
  rows,
})
