import type { KindName } from '../kinds/index.ts'
import { hostPort } from '../net/connect.ts'
import type { ServerType } from '../protocol/index.ts'
import type { Identified } from './identify.ts'

/** A monitor as in svc.yaml. */
export type ProposedEntry = { readonly kind: KindName; readonly name: string } & Readonly<Record<string, unknown>>
export type Proposal = {
  readonly type: ServerType
  /** Needs no secret. */
  readonly entry: ProposedEntry
  /** Why the entry does not work as it is, once it has been run: the whole entry is then a comment. */
  readonly problem?: string | undefined
  /** The reason, or what to pay attention to: a comment above it. */
  readonly note?: string | undefined
  /** A deeper check that needs an account: a comment below it. */
  readonly deeper?: ProposedEntry | undefined
}

type Propose = (identified: Identified, name: string) => Proposal

const connects = ({ host, port }: Identified, name: string): ProposedEntry => ({ kind: 'tcp', name, host, port })
const password = { file: '/run/credentials/svc/PASSWORD' }
const account = { username: 'monitor', password }
/** For services that reveal nothing before a sign-in: without an account, only the port is checked. */
const behindSignIn =
  (type: ServerType, kind: KindName, settings: (address: string) => Readonly<Record<string, unknown>>): Propose =>
  (identified, name) => ({
    type,
    entry: connects(identified, name),
    deeper: { kind, name, ...settings(hostPort(identified.host, identified.port)), password },
  })
/** For services that anonymous callers can check, and more thoroughly with an account. */
const openTo =
  (type: ServerType, kind: KindName, more: Readonly<Record<string, unknown>> = {}): Propose =>
  ({ host, port }, name) => {
    const entry = { kind, name, host, port, ...more }
    return { type, entry, deeper: { ...entry, ...account } }
  }

/**
 * The settings with which svc trusts the certificate of a service: the name in it, or its fingerprint if no CA that
 * this machine trusts has signed it. None for an expired one, so that its monitor fails.
 */
function trustOf({ tls }: Identified): {
  readonly settings: Readonly<Record<string, unknown>>
  readonly note?: string | undefined
} {
  if (!tls || tls.trusted || tls.expired) return { settings: {} }
  if (tls.chainTrusted && tls.name !== undefined) return { settings: { servername: tls.name } }
  const note =
    'this machine does not trust its certificate, which is pinned: a new one fails until fingerprint names it'
  return { settings: { fingerprint: tls.fingerprint }, note }
}

const mailEncryption = (identified: Identified): Readonly<Record<string, unknown>> =>
  identified.tls
    ? { tls: 'implicit', ...trustOf(identified).settings }
    : { tls: identified.startTls ? 'starttls' : 'off' }

const ftpEncryption = (identified: Identified): Readonly<Record<string, unknown>> =>
  identified.tls
    ? { tls: 'implicit', ...trustOf(identified).settings }
    : { tls: identified.startTls ? 'explicit' : 'off' }

function ldapEntries(identified: Identified, name: string): Pick<Proposal, 'entry' | 'deeper'> {
  const url = `${identified.tls ? 'ldaps' : 'ldap'}://${hostPort(identified.host, identified.port)}`
  const entry: ProposedEntry = { kind: 'ldap', name, url, ...trustOf(identified).settings }
  return { entry, deeper: { ...entry, user: 'cn=monitor,dc=example,dc=org', password } }
}

/** Protocol → monitors to propose. */
const proposals: Readonly<Record<string, Propose>> = {
  postgres: behindSignIn('Sql', 'postgres', (address) => ({ url: `postgres://monitor@${address}/postgres` })),
  mysql: behindSignIn('Sql', 'mysql', (address) => ({ url: `mysql://monitor@${address}/` })),
  sqlserver: behindSignIn('Sql', 'sqlserver', (address) => ({ url: `sqlserver://monitor@${address}/master` })),
  mongo: behindSignIn('Mongo', 'mongo', (address) => ({ url: `mongodb://monitor@${address}/admin` })),
  redis: (identified, name) => {
    const scheme = identified.tls ? 'rediss' : 'redis'
    const url = `${scheme}://${hostPort(identified.host, identified.port)}`
    const entry: ProposedEntry = { kind: 'redis', name, url, ...trustOf(identified).settings }
    const note = identified.sentinel
      ? 'a Redis Sentinel: svc checks the primaries that it monitors, and each Redis server needs a monitor of its own'
      : undefined
    if (!identified.guarded) return { type: 'Batch', entry, note }
    return { type: 'Batch', entry: connects(identified, name), deeper: { ...entry, password } }
  },
  amqp: (identified, name) => ({ type: 'Batch', entry: connects(identified, name) }),
  ldap: (identified, name) => ({
    type: 'Identity',
    ...ldapEntries(identified, name),
    note: trustOf(identified).note,
  }),
  smtp: (identified, name) => openTo('App', 'smtp', mailEncryption(identified))(identified, name),
  ftp: (identified, name) => openTo('Ftp', 'ftp', ftpEncryption(identified))(identified, name),
  dns: ({ host, port }, name) => ({
    type: 'App',
    entry: { kind: 'dns', name, server: hostPort(host, port), query: 'localhost' },
    note: 'set query to a name that clients look up here',
  }),
  ssh: openTo('Ftp', 'sftp'),
  http: (identified, name) => {
    const url = `${identified.tls ? 'https' : 'http'}://${hostPort(identified.host, identified.port)}/`
    const page = identified.landing === undefined ? url : new URL(identified.landing, url).href
    const { settings, note } = trustOf(identified)
    return {
      type: identified.port === vantagePort ? 'XcodeV' : identified.port === managementPort ? 'Batch' : 'App',
      entry: { kind: 'http', name, url: page, ...settings },
      note,
      ...(identified.port === managementPort
        ? {
            deeper: {
              kind: 'rabbitmq',
              name: `rabbitmq-${identified.port}`,
              url: url.slice(0, -1),
              ...settings,
              ...account,
            },
          }
        : {}),
    }
  },
}
/** Ports that identify a service behind HTTP. */
const vantagePort = 8_676
const managementPort = 15_672

/** Monitors for the services found, with unique names that contain the port. */
export const propose = (identified: readonly Identified[]): readonly Proposal[] =>
  identified.flatMap((one) => {
    const make = proposals[one.what]
    return make ? [make(one, nameOf(one))] : []
  })

function nameOf({ what, product, port }: Identified): string {
  const [, word] = what === 'http' ? (/^([a-z][a-z0-9]{1,20})/i.exec(product ?? '') ?? []) : []
  return `${(word ?? what).toLowerCase()}-${port}`
}
