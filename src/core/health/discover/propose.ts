import type { ServerType } from '../../protocol/index.ts'
import type { KindName } from '../monitors/index.ts'
import { hostPort } from '../net.ts'
import type { Identified } from './identify.ts'

/** A monitor as svc.yaml would say it. */
export type ProposedEntry = { readonly kind: KindName; readonly name: string } & Readonly<Record<string, unknown>>
export type Proposal = {
  readonly type: ServerType
  /** Works as it is: asks for no secret, and was seen to answer. */
  readonly entry: ProposedEntry
  /** Why, or what to look at: a comment above it. */
  readonly note?: string | undefined
  /** What looks deeper once it has an account: a comment below it. */
  readonly deeper?: ProposedEntry | undefined
}

type Propose = (found: Identified, name: string) => Proposal

const connects = ({ host, port }: Identified, name: string): ProposedEntry => ({ kind: 'tcp', name, host, port })
const password = { file: '/run/credentials/svc/PASSWORD' }
/** A database says nothing worth a check before a sign-in, so without an account the port alone is watched. */
const database =
  (kind: KindName, type: ServerType, settings: (address: string) => Readonly<Record<string, unknown>>): Propose =>
  (found, name) => ({
    type,
    entry: connects(found, name),
    deeper: { kind, name, ...settings(hostPort(found.host, found.port)), password },
  })

/** Protocol → what to watch of it. */
const proposals: Readonly<Record<string, Propose>> = {
  postgres: database('postgres', 'Sql', (address) => ({ url: `postgres://monitor@${address}/postgres` })),
  mysql: database('mysql', 'Sql', (address) => ({ url: `mysql://monitor@${address}/` })),
  sqlserver: (found, name) => ({ type: 'Sql', entry: connects(found, name) }),
  mongo: (found, name) => ({ type: 'Mongo', entry: connects(found, name) }),
  redis: (found, name) => ({ type: 'Batch', entry: connects(found, name) }),
  amqp: (found, name) => ({ type: 'Batch', entry: connects(found, name) }),
  ldap: (found, name) => ({ type: 'Identity', entry: connects(found, name) }),
  smtp: (found, name) => ({ type: 'App', entry: connects(found, name) }),
  ftp: (found, name) => ({ type: 'Ftp', entry: connects(found, name) }),
  ssh: (found, name) => ({ type: 'Ftp', entry: connects(found, name) }),
  http: (found, name) => {
    const url = `${found.tls ? 'https' : 'http'}://${hostPort(found.host, found.port)}/`
    return {
      type: found.port === 8_676 ? 'XcodeV' : 'App',
      entry: { kind: 'http', name, url, ...(found.tls?.trusted === false ? { verify: false } : {}) },
      note:
        found.tls?.trusted === false
          ? 'its certificate does not name this address: write the name that users go by into url, and take verify out'
          : undefined,
    }
  },
}

/** What to watch of what was found, under names that are unique and tell the port. */
export const propose = (found: readonly Identified[]): readonly Proposal[] =>
  found.flatMap((one) => {
    const make = proposals[one.what]
    return make ? [make(one, nameOf(one))] : []
  })

function nameOf({ what, product, port }: Identified): string {
  const [, word] = what === 'http' ? (/^([a-z][a-z0-9]{1,20})/i.exec(product ?? '') ?? []) : []
  return `${(word ?? what).toLowerCase()}-${port}`
}
