import { randomUUID } from 'node:crypto'
import { search } from '../../src/core/checks/kinds/ldap/checks.ts'
import { grants } from '../../src/core/checks/kinds/ldap/databases.ts'
import { provider as ofProvider } from '../../src/core/checks/kinds/ldap/provider.ts'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import {
  admin,
  ldapClientMissing,
  modify,
  mustModify,
  probe,
  replicaOf,
  type Slapd,
  slapdMissing,
  startSlapd,
  suffix,
} from '../support/servers/slapd.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { atDepths, changeOf, type Depths, failsFromStandard, healthy, mustMiss, mustRefuse } from './depths.ts'
import { fails, notChecked, type Row } from './row.ts'

const env = { PROBE: probe.password }
const account = { kind: 'ldap', username: probe.user, password: { env: 'PROBE' }, base: suffix }

/** The privileges of the account that the reference demands, as written there. */
const forProbe = (privilege = ''): string =>
  (privilege.split('; 389-ds')[0] ?? '').replace('<user>', probe.user).replace('<base>', suffix)
const documented = [search, ofProvider].map(({ privilege }) => forProbe(privilege))
const signIns = 'access to attrs=userPassword by anonymous auth'
/** Before the first database. */
const config = ['database config', forProbe(grants.config)]
const monitor = [forProbe(grants.monitor)]

const client = ({ url }: Slapd, text: string) => modify(url, admin, changeOf(text))

type Pair = { readonly provider: Slapd; readonly replica: Slapd; readonly between: CutProxy }

const ofReplica = (more: object = {}) => ({
  monitor: ({ provider, replica }: Pair) => ({ ...account, url: replica.url, provider: provider.url, ...more }),
})

/** The replica's connection stays open and carries nothing; then the provider changes. */
async function stall({ provider, replica, between }: Pair) {
  between.stall()
  const text = `after stall ${randomUUID()}`
  mustModify(provider.url, admin, changeOf(text))
  mustMiss(replica.url, text)
  return () => between.heal('flows')
}

const pairRows: readonly Row<Pair>[] = [
  ...atDepths({ fault: 'a healthy replica', ...ofReplica() }, healthy),
  ...atDepths(
    {
      fault: 'a healthy replica after a quiet time and one change',
      ...ofReplica(),
      plant: async ({ provider }) => {
        mustModify(provider.url, admin, changeOf('one change'))
        return undefined
      },
    },
    healthy,
  ),
  ...atDepths(
    { fault: 'a healthy provider', monitor: ({ provider }: Pair) => ({ ...account, url: provider.url }) },
    healthy,
  ),
  ...atDepths(
    {
      fault: 'a replica whose connection to its provider carries nothing',
      ...ofReplica({ replicationLag: { limit: '1ms' } }),
      plant: stall,
    },
    failsFromStandard(
      fails('provider', 'threshold', /lacks changes of 127\.0\.0\.1:\d+, the oldest from [\d.]+ \S+ ago/),
    ),
  ),
  ...atDepths(
    { fault: 'a replica whose provider is gone', ...ofReplica({ provider: 'ldap://127.0.0.1:1' }) },
    failsFromStandard(
      notChecked('provider', /the provider of 127\.0\.0\.1:\d+ does not answer: 127\.0\.0\.1:1 refused the connection/),
    ),
  ),
  ...atDepths(
    {
      fault: 'a replica whose provider is frozen',
      ...ofReplica({ timeout: '8s' }),
      plant: async ({ provider }) => {
        provider.freeze()
        return provider.thaw
      },
    },
    failsFromStandard(
      notChecked(
        'provider',
        /the provider of 127\.0\.0\.1:\d+ does not answer: 127\.0\.0\.1:\d+ accepted the connection/,
      ),
    ),
  ),
]

corpus<Pair>({
  server: 'OpenLDAP, a provider and its replica',
  missing: slapdMissing ?? ldapClientMissing,
  start: async () => {
    const provider = await startSlapd({ global: config, monitor, database: [signIns, ...documented] })
    const between = await cutProxy(provider.port)
    const replica = await startSlapd({
      global: config,
      monitor,
      isEmpty: true,
      database: [...replicaOf({ url: `ldap://127.0.0.1:${between.port}` }), signIns, ...documented],
    })
    // The account signs in once its entry has arrived.
    await until(() => modify(replica.url, probe, '').code === 0)
    return { provider, replica, between }
  },
  stop: async ({ provider, replica, between }) => {
    for (const server of [replica, provider]) {
      server.thaw()
      await server.remove()
    }
    await between.close()
  },
  rows: pairRows.map((row) => ({ ...row, env })),
})

/** An account of the password policy, in LDIF. `more`: operational attributes, in their state. */
const person = (name: string, more: readonly string[]): string =>
  [
    `dn: uid=${name},ou=people,${suffix}`,
    ...['objectClass: inetOrgPerson', `cn: ${name}`, `sn: ${name}`, `userPassword: ${probe.password}`, ...more],
    '',
  ].join('\n')
const generalized = (at: number): string => `${new Date(at).toISOString().replaceAll(/[-:T]|\.\d+/g, '')}`
const day = 86_400_000
const policy = (name: string, more: readonly string[]): string =>
  [
    `dn: cn=${name},${suffix}`,
    ...['objectClass: device', 'objectClass: pwdPolicy', `cn: ${name}`, 'pwdAttribute: userPassword', ...more],
    '',
  ].join('\n')
const changed = (daysAgo: number): string => `pwdChangedTime: ${generalized(Date.now() - daysAgo * day)}`

type Faulty = {
  readonly readOnly: Slapd
  readonly restricted: Slapd
  readonly full: Slapd
  readonly policies: Slapd
  readonly strict: Slapd
}

const at = (name: keyof Faulty, more: object = {}) => ({
  monitor: (servers: Faulty) => ({ ...account, url: servers[name].url, ...more }),
})
const signedInAs = (name: string) => at('policies', { username: `uid=${name},ou=people,${suffix}` })
const refusedSignIn = (says: RegExp): Depths => failsFromStandard(fails('bind', 'auth', says))

/**
 * Adds to the database until it refuses an entry of 3 KB. slapd 2.5.13 stops answering when even the commit of a smaller
 * one finds no page.
 */
function fill({ url }: Slapd): void {
  for (let size = 200_000; size >= 3_000; size = Math.floor(size / 4)) {
    for (let n = 0; n < 200; n += 1) {
      const entry = `dn: cn=${size}-${n},${suffix}\nchangetype: add\nobjectClass: device\ncn: ${size}-${n}\ndescription: ${'x'.repeat(size)}\n`
      const { code, text } = modify(url, admin, entry)
      if (code === 80) break
      if (code !== 0) throw new Error(`ldapmodify ended with ${code}: ${text}`)
    }
  }
}

const faultyRows: readonly Row<Faulty>[] = [
  ...atDepths(
    {
      fault: 'a database that is set read-only',
      ...at('readOnly'),
      plant: async ({ readOnly }) => {
        mustRefuse(client(readOnly, 'x'), 53, /operation restricted/)
        return undefined
      },
    },
    failsFromStandard(
      fails(`read-only ${suffix}`, 'data', /"dc=example,dc=org" refuses all changes: its database is set read-only/),
    ),
  ),
  ...atDepths(
    {
      fault: 'a database that refuses changes (restrict write)',
      ...at('restricted'),
      plant: async ({ restricted }) => {
        mustRefuse(client(restricted, 'x'), 53, /operation restricted/)
        return undefined
      },
    },
    failsFromStandard(fails(`read-only ${suffix}`, 'data', /refuses all changes/)),
  ),
  ...atDepths({ fault: 'a database that is meant to be read-only', ...at('readOnly', { readOnly: true }) }, healthy),
  ...atDepths(
    {
      fault: 'a database whose memory map is full',
      ...at('full'),
      plant: async ({ full }) => {
        mustRefuse(
          modify(
            full.url,
            admin,
            `dn: cn=one more,${suffix}\nchangetype: add\nobjectClass: device\ncn: one more\ndescription: ${'x'.repeat(40_000)}\n`,
          ),
          80,
          /./,
        )
        return undefined
      },
    },
    failsFromStandard(
      fails(
        `database space ${suffix}`,
        'threshold',
        /uses \d+ of \d+ pages of its memory map \(maxsize\): (?:9[5-9]|100)/,
      ),
    ),
  ),
  ...atDepths({ fault: 'a sound password', ...signedInAs('sound') }, healthy),
  ...atDepths(
    { fault: 'an account that is locked', ...signedInAs('locked') },
    refusedSignIn(/: the account is locked$/),
  ),
  ...atDepths(
    { fault: 'a password that has expired', ...signedInAs('expired') },
    refusedSignIn(/: the password has expired$/),
  ),
  ...atDepths(
    { fault: 'a password that must be changed first', ...signedInAs('reset') },
    refusedSignIn(/restricts the account "uid=reset,[^"]+": the password must be changed first$/),
  ),
  ...atDepths(
    { fault: 'a password that expires tomorrow', ...signedInAs('soon') },
    failsFromStandard(fails('password expiry', 'threshold', /the password of "uid=soon,[^"]+" expires in/)),
  ),
  ...atDepths(
    { fault: 'a password that has expired, with two sign-ins left at first', ...signedInAs('grace') },
    failsFromStandard(
      fails('password expiry', 'auth', /the password of "uid=grace,[^"]+" has expired: \d+ more sign-ins? with it/),
    ),
  ),
  ...atDepths(
    {
      fault: 'a server that wants an account for every search',
      monitor: ({ strict }: Faulty) => ({ kind: 'ldap', url: strict.url, base: suffix }),
    },
    failsFromStandard(fails('rootDSE', 'any', /unwillingToPerform\): "authentication required"/)),
  ),
]

corpus<Faulty>({
  server: 'OpenLDAP, databases and password policies',
  missing: slapdMissing ?? ldapClientMissing,
  start: async () => {
    const database = [signIns, ...documented]
    const full = await startSlapd({ global: config, monitor, database: ['maxsize 4194304', ...database] })
    fill(full)
    return {
      full,
      readOnly: await startSlapd({ global: config, monitor, database: ['readonly on', ...database] }),
      restricted: await startSlapd({ global: config, monitor, database: ['restrict write', ...database] }),
      strict: await startSlapd({ global: ['require authc'], database }),
      policies: await startSlapd({
        modules: ['ppolicy'],
        global: config,
        monitor,
        database: [
          'overlay ppolicy',
          `ppolicy_default "cn=usual,${suffix}"`,
          'ppolicy_use_lockout',
          signIns,
          `access to * by users read`,
        ],
        entries: [
          policy('usual', [
            `pwdMaxAge: ${30 * 86_400}`,
            `pwdExpireWarning: ${14 * 86_400}`,
            'pwdLockout: TRUE',
            'pwdMustChange: TRUE',
          ]),
          policy('grace', [`pwdMaxAge: ${30 * 86_400}`, 'pwdGraceAuthnLimit: 20']),
          person('sound', [changed(1)]),
          person('soon', [changed(29)]),
          person('expired', [changed(31)]),
          person('grace', [changed(31), `pwdPolicySubentry: cn=grace,${suffix}`]),
          person('locked', [changed(1), 'pwdAccountLockedTime: 000001010000Z']),
          person('reset', [changed(1), 'pwdReset: TRUE']),
        ],
      }),
    }
  },
  rows: faultyRows.map((row) => ({ ...row, env })),
})
