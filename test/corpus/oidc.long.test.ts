import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'
import {
  account,
  client,
  type OidcServer,
  passwordClient,
  resource,
  sealedResource,
  startOidc,
} from '../support/openid/oidc.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const env = {
  CLIENT: client.clientSecret,
  PEOPLE: passwordClient.clientSecret,
  PASSWORD: account.password,
  WRONG: 'not-the-secret',
}

type Servers = { readonly good: OidcServer; readonly expired: OidcServer; readonly fiveDays: OidcServer }
const provider =
  (more: object = {}, name: keyof Servers = 'good') =>
  (servers: Servers) => ({ kind: 'oidc', issuer: servers[name].issuer, caFile: certificates?.caFile, ...more })
const withClient = { clientId: client.clientId, clientSecret: { env: 'CLIENT' } }
const withPeople = {
  clientId: passwordClient.clientId,
  clientSecret: { env: 'PEOPLE' },
  username: account.user,
  password: { env: 'PASSWORD' },
}
const ask =
  (name: keyof Servers = 'good') =>
  (servers: Servers): readonly PeerProgram[] => [
    {
      program: 'check_http',
      args: [
        ...['-S', '-I', '127.0.0.1', '-p', String(servers[name].port), '-t', '4'],
        ...['-u', '/.well-known/openid-configuration', '-s', 'jwks_uri'],
      ],
    },
    {
      program: 'blackbox_exporter',
      module: { prober: 'http', http: { preferred_ip_protocol: 'ip4', tls_config: { ca_file: certificates?.caFile } } },
      target: `${servers[name].issuer}/.well-known/openid-configuration`,
    },
  ]

const rows: readonly Row<Servers>[] = [
  {
    fault: 'healthy, with a signed token of a client',
    monitor: provider({ ...withClient, resource, refusesWrongSecret: true }),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  {
    fault: 'healthy, with an encrypted token of a client',
    monitor: provider({ ...withClient, resource: sealedResource }),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  {
    fault: 'an encrypted token, whose audience nobody else can read',
    monitor: provider({ ...withClient, resource: sealedResource, audience: 'urn:example:other' }),
    expected: notChecked('claims', /audience.*encrypted token/),
    before: 'ok',
    peers: ask(),
  },
  {
    fault: 'an opaque token, whose audience only the provider can read',
    monitor: provider({ ...withClient, audience: 'urn:example:other' }),
    expected: notChecked('claims', /audience.*opaque token/),
    before: 'ok',
    peers: ask(),
  },
  {
    fault: 'healthy, with a token that the provider introspects',
    monitor: provider({ ...withClient, introspect: true }),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  {
    fault: 'healthy, with the password grant of an account',
    monitor: provider(withPeople),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  { fault: 'healthy without a client', monitor: provider(), expected: { state: 'healthy' }, peers: ask() },
  {
    fault: 'the secret of the client was changed',
    monitor: provider({ ...withClient, clientSecret: { env: 'WRONG' } }),
    expected: fails('token', 'auth', /svc-probe.*invalid_client/),
    peers: ask(),
  },
  {
    fault: 'the client was removed',
    monitor: provider({ ...withClient, clientId: 'svc-removed' }),
    expected: fails('token', 'auth', /svc-removed.*invalid_client/),
    peers: ask(),
  },
  {
    fault: 'the client may not use the grant',
    monitor: provider({ ...withClient, username: account.user, password: { env: 'PASSWORD' } }),
    expected: fails('user', 'any', /unauthorized_client|grant type is not allowed/),
    peers: ask(),
  },
  {
    fault: 'the password of the account was changed',
    monitor: provider({ ...withPeople, password: { env: 'WRONG' } }),
    expected: fails('user', 'auth', /invalid_grant/),
    peers: ask(),
  },
  {
    fault: 'the issuer is written with a slash',
    monitor: ({ good }) => provider({ issuer: `${good.issuer}/` })({ good } as Servers),
    expected: fails('issuer', 'data', /slash at the end/),
    peers: ask(),
  },
  {
    fault: 'the path of the issuer was changed',
    monitor: ({ good }) => provider({ issuer: `${good.issuer}/tenant` })({ good } as Servers),
    expected: fails('discovery', 'data', /no discovery document.*tenant/),
    peers: ask(),
  },
  {
    fault: 'a token for another audience',
    monitor: provider({ ...withClient, resource, audience: 'urn:example:other' }),
    expected: fails('claims', 'data', /aud is .*not "urn:example:other"/),
    peers: ask(),
  },
  {
    fault: 'the resource is unknown to the provider',
    monitor: provider({ ...withClient, resource: 'urn:example:unknown' }),
    expected: fails('token', 'any', /invalid_target/),
    peers: ask(),
  },
  {
    fault: 'an expired certificate',
    monitor: provider({}, 'expired'),
    expected: fails('discovery', 'tls', /expired/),
    peers: ask('expired'),
  },
  {
    fault: 'the certificate ends in 5 days',
    monitor: provider({}, 'fiveDays'),
    expected: warns('certificate', /in [45](?:\.\d)? d/),
    peers: ask('fiveDays'),
  },
  {
    fault: 'the provider is stopped',
    monitor: provider({}, 'fiveDays'),
    plant: async ({ fiveDays }) => {
      await fiveDays.close()
      return undefined
    },
    expected: fails('discovery', 'refused', /refused/),
    peers: ask('fiveDays'),
  },
]

const { version } = JSON.parse(
  readFileSync(new URL('../../node_modules/oidc-provider/package.json', import.meta.url), 'utf8'),
) as { readonly version: string }

corpus<Servers>({
  server: `oidc-provider ${version}`,
  env,
  missing: opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const { good, expired, fiveDays } = certificates
    return {
      good: await startOidc({ tls: good }),
      expired: await startOidc({ tls: expired }),
      fiveDays: await startOidc({ tls: fiveDays }),
    }
  },
  stop: async ({ good, expired }) => {
    await good.close()
    await expired.close()
  },
  rows,
})
