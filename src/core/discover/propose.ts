import type { KindName } from '../kinds/index.ts'
import { hostPort } from '../net/connect.ts'
import type { ServerType } from '../protocol/index.ts'
import type { Identified } from './identify.ts'

/** A monitor as in svc.yaml. */
export type ProposedEntry = { readonly kind: KindName; readonly name: string } & Readonly<Record<string, unknown>>
export type Proposal = {
  readonly type: ServerType
  /** Works as it is: it needs no secret, and the service has answered. */
  readonly entry: ProposedEntry
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

/** Protocol → monitors to propose. */
const proposals: Readonly<Record<string, Propose>> = {
  postgres: behindSignIn('Sql', 'postgres', (address) => ({ url: `postgres://monitor@${address}/postgres` })),
  mysql: behindSignIn('Sql', 'mysql', (address) => ({ url: `mysql://monitor@${address}/` })),
  sqlserver: behindSignIn('Sql', 'sqlserver', (address) => ({ url: `sqlserver://monitor@${address}/master` })),
  mongo: behindSignIn('Mongo', 'mongo', (address) => ({ url: `mongodb://monitor@${address}/admin` })),
  redis: (identified, name) => {
    const entry: ProposedEntry = { kind: 'redis', name, url: `redis://${hostPort(identified.host, identified.port)}` }
    if (!identified.guarded) return { type: 'Batch', entry }
    return { type: 'Batch', entry: connects(identified, name), deeper: { ...entry, password } }
  },
  amqp: (identified, name) => ({ type: 'Batch', entry: connects(identified, name) }),
  ldap: (identified, name) => ({
    type: 'Identity',
    entry: { kind: 'ldap', name, url: `ldap://${hostPort(identified.host, identified.port)}` },
  }),
  smtp: (identified, name) => openTo('App', 'smtp', { tls: 'off' })(identified, name),
  ftp: openTo('Ftp', 'ftp', { tls: 'off' }),
  ssh: openTo('Ftp', 'sftp'),
  http: (identified, name) => {
    const url = `${identified.tls ? 'https' : 'http'}://${hostPort(identified.host, identified.port)}/`
    const stranger = identified.tls?.trusted === false
    return {
      type: identified.port === vantagePort ? 'XcodeV' : identified.port === managementPort ? 'Batch' : 'App',
      entry: { kind: 'http', name, url, ...(stranger ? { verify: false } : {}) },
      note: stranger
        ? 'its certificate is not valid for this address: set url to the name that clients use, and remove verify'
        : undefined,
      ...(identified.port === managementPort
        ? { deeper: { kind: 'rabbitmq', name: `rabbitmq-${identified.port}`, url: url.slice(0, -1), ...account } }
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
