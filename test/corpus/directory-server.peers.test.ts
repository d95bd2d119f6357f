import { execFileSync } from 'node:child_process'
import { grants } from '../../src/core/checks/kinds/ldap/databases.ts'
import { agreementsGrant } from '../../src/core/checks/kinds/ldap/provider.ts'
import {
  addAgreement,
  addTree,
  agreementOf,
  allow,
  type DirectoryServer,
  directoryServerMissing,
  initialize,
  manager,
  startDirectoryServer,
} from '../support/servers/directory-server.ts'
import { dedicated, modify, mustModify, probe, readEntry, suffix } from '../support/servers/slapd.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { atDepths, changeOf, failsFromStandard, healthy, mustMiss, mustRefuse } from './depths.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const env = { PROBE: probe.password, DEDICATED: dedicated.password }

type Pair = { readonly a: DirectoryServer; readonly b: DirectoryServer }

const at = (name: keyof Pair, more: object = {}) => ({
  env,
  monitor: (pair: Pair) => ({
    kind: 'ldap',
    url: pair[name].url,
    username: probe.user,
    password: { env: 'PROBE' },
    base: suffix,
    ...more,
  }),
})
const replicaB = (more: object = {}) => ({
  env,
  monitor: (pair: Pair) => ({ ...at('b').monitor(pair), provider: pair.a.url, ...more }),
})

const set = ({ url }: DirectoryServer, entry: string, name: string, value: string): void =>
  mustModify(url, manager, `dn: ${entry}\nchangetype: modify\nreplace: ${name}\n${name}: ${value}\n`)
const database = 'cn=userRoot,cn=ldbm database,cn=plugins,cn=config'
const has = ({ url }: DirectoryServer, text: string): boolean =>
  readEntry(url, manager, `ou=people,${suffix}`).includes(`description: ${text}\n`)

/** Changes an entry, and waits until the other server has the change. */
async function settle({ a, b }: Pair, text: string): Promise<void> {
  mustModify(a.url, manager, changeOf(text))
  await until(() => has(b, text), 60_000, 200)
}

const rows: readonly Row<Pair>[] = [
  ...atDepths({ fault: 'a healthy server of a pair', ...at('a', { agreements: 1 }) }, healthy),
  ...atDepths({ fault: 'a healthy server that receives changes', ...replicaB() }, healthy),
  ...atDepths(
    { fault: 'an account without the ACI', ...at('a', { username: dedicated.user, password: { env: 'DEDICATED' } }) },
    healthy,
  ),
  ...atDepths(
    {
      fault: 'an account without the ACI, of which svc.yaml demands agreements',
      ...at('a', { username: dedicated.user, password: { env: 'DEDICATED' }, agreements: 1 }),
    },
    failsFromStandard(notChecked('agreements', /shows 0 replication agreements \(at least 1\): aci: \(targetattr=/)),
  ),
  ...atDepths(
    {
      fault: 'an agreement with a server that is gone',
      ...at('a'),
      plant: async (pair) => {
        addAgreement(pair.a, 'to-c', 1)
        mustModify(pair.a.url, manager, changeOf('for c'))
        await until(
          () => /LastUpdateStatus: Error \(-?[1-9]/i.test(readEntry(pair.a.url, manager, agreementOf('to-c'))),
          60_000,
          200,
        )
        return () => mustModify(pair.a.url, manager, `dn: ${agreementOf('to-c')}\nchangetype: delete\n`)
      },
    },
    failsFromStandard(
      fails(
        'agreement to-c',
        'data',
        /127\.0\.0\.1:1 receives no changes: "Error \(-1\) Problem connecting to replica/,
      ),
    ),
  ),
  ...atDepths(
    {
      fault: 'a replica whose supplier sends nothing more',
      ...replicaB({ replicationLag: { limit: '1ms' } }),
      plant: async (pair) => {
        set(pair.a, agreementOf('to-b'), 'nsds5ReplicaEnabled', 'off')
        mustModify(pair.a.url, manager, changeOf('after the stop'))
        mustMiss(pair.b.url, 'after the stop', manager)
        return async () => {
          set(pair.a, agreementOf('to-b'), 'nsds5ReplicaEnabled', 'on')
          await settle(pair, 'again')
        }
      },
    },
    failsFromStandard(
      fails('provider', 'threshold', /lacks changes of 127\.0\.0\.1:\d+, the oldest from [\d.]+ \S+ ago/),
    ),
  ),
  ...atDepths(
    {
      fault: 'an agreement that is disabled',
      ...at('a'),
      plant: async (pair) => {
        set(pair.a, agreementOf('to-b'), 'nsds5ReplicaEnabled', 'off')
        return async () => {
          set(pair.a, agreementOf('to-b'), 'nsds5ReplicaEnabled', 'on')
          await settle(pair, 'enabled')
        }
      },
    },
    failsFromStandard(warns('agreement to-b', /the replication agreement is disabled/)),
  ),
  ...atDepths(
    {
      fault: 'a database that is set read-only',
      ...at('a'),
      plant: async ({ a }) => {
        set(a, database, 'nsslapd-readonly', 'on')
        mustRefuse(modify(a.url, manager, changeOf('x')), 53, /read-only/)
        return () => set(a, database, 'nsslapd-readonly', 'off')
      },
    },
    failsFromStandard(fails(`read-only ${suffix}`, 'data', /"dc=example,dc=org" refuses all changes/)),
  ),
  ...atDepths(
    {
      fault: 'an ACI that denies the account everything below the base',
      ...at('a'),
      plant: async ({ a }) => {
        const deny = `(targetattr="*")(version 3.0; acl "deny"; deny (all) userdn="ldap:///${probe.user}";)`
        allow(a, suffix, `aci: ${deny}`)
        if (readEntry(a.url, probe, suffix).includes('dn:')) throw new Error('the client reads the base')
        return () => mustModify(a.url, manager, `dn: ${suffix}\nchangetype: modify\ndelete: aci\naci: ${deny}\n`)
      },
    },
    failsFromStandard(fails('search', 'data', /shows nothing of "dc=example,dc=org": check its access rules/)),
  ),
  ...atDepths(
    {
      fault: 'an account that is inactivated',
      ...at('a'),
      plant: async ({ a }) => {
        set(a, probe.user, 'nsAccountLock', 'true')
        mustRefuse(modify(a.url, probe, ''), 53, /Account inactivated/)
        return () => mustModify(a.url, manager, `dn: ${probe.user}\nchangetype: modify\ndelete: nsAccountLock\n`)
      },
    },
    failsFromStandard(fails('bind', 'auth', /: the account is locked$/)),
  ),
  ...atDepths(
    {
      fault: 'a password that has expired',
      ...at('a'),
      plant: async ({ a }) => {
        set(a, 'cn=config', 'passwordExp', 'on')
        set(a, probe.user, 'passwordExpirationTime', '20200101000000Z')
        set(a, probe.user, 'passwordExpWarned', '1')
        mustRefuse(modify(a.url, probe, ''), 49, /expired/)
        return () => {
          set(a, 'cn=config', 'passwordExp', 'off')
          mustModify(a.url, manager, `dn: ${probe.user}\nchangetype: modify\ndelete: passwordExpirationTime\n`)
        }
      },
    },
    failsFromStandard(fails('bind', 'auth', /: the password has expired$/)),
  ),
]

const version = (): string =>
  /389-Directory\/([\d.]+)/.exec(execFileSync('sh', ['-c', 'ns-slapd -v 2>&1 || true'], { encoding: 'utf8' }))?.[1] ??
  ''

/** The privileges of the account that the reference demands, as written there. */
const forProbe = (grant: string): string => grant.replace('<user>', probe.user)
const readers = (user: string): string =>
  `aci: (targetattr="objectClass")(version 3.0; acl "svc ${user}"; allow (read, search) userdn="ldap:///${user}";)`

corpus<Pair>({
  server: `389 Directory Server ${directoryServerMissing === undefined ? version() : ''}, a pair`.replace(' ,', ','),
  missing: directoryServerMissing,
  start: async () => {
    const [a, b] = [await startDirectoryServer(1), await startDirectoryServer(2)]
    addTree(a, [
      `dn: ${dedicated.user}\nchangetype: add\nobjectClass: inetOrgPerson\ncn: d\nsn: d\nuserPassword: ${dedicated.password}\n`,
    ])
    for (const user of [probe.user, dedicated.user]) allow(a, suffix, readers(user))
    await initialize(a, b)
    addAgreement(a, 'to-b', b.port)
    addAgreement(b, 'to-a', a.port)
    for (const server of [a, b]) {
      allow(server, 'cn=config', forProbe(grants.directoryServer))
      allow(server, 'cn=mapping tree,cn=config', forProbe(agreementsGrant))
    }
    await settle({ a, b }, 'first')
    return { a, b }
  },
  rows,
})
