import { opensslMissing } from '../support/servers/certs.ts'
import {
  type Keycloak,
  keycloakAccount,
  keycloakClient,
  keycloakMissing,
  keycloakVersion,
  startKeycloak,
} from '../support/servers/keycloak.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const env = { CLIENT: keycloakClient.clientSecret, PASSWORD: keycloakAccount.password, WRONG: 'not-the-secret' }
const withClient = { clientId: keycloakClient.clientId, clientSecret: { env: 'CLIENT' } }
const withPerson = { ...withClient, username: keycloakAccount.user, password: { env: 'PASSWORD' } }
/** The first tokens of a Java process take their time. */
const latency = '20s'

const provider =
  (more: object = {}, realm = 'shop') =>
  ({ issuer }: Keycloak) => ({ kind: 'oidc', issuer: issuer(realm), latency, ...more })
const ask =
  (realm = 'shop') =>
  ({ port, issuer }: Keycloak): readonly PeerProgram[] => [
    {
      program: 'check_http',
      args: [
        ...['-I', '127.0.0.1', '-p', String(port), '-t', '4'],
        ...['-u', `/realms/${realm}/.well-known/openid-configuration`, '-s', 'jwks_uri'],
      ],
    },
    {
      program: 'blackbox_exporter',
      module: { prober: 'http', http: { preferred_ip_protocol: 'ip4' } },
      target: `${issuer(realm)}/.well-known/openid-configuration`,
    },
  ]

const rows: readonly Row<Keycloak>[] = [
  {
    fault: 'healthy, with a client and an account',
    monitor: provider({ ...withPerson, introspect: true, refusesWrongSecret: true }),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  {
    fault: 'healthy, with a key that is three years old',
    monitor: provider(withClient, 'old'),
    expected: { state: 'healthy' },
    peers: ask('old'),
  },
  {
    fault: 'a key older than the threshold',
    monitor: provider({ ...withClient, keyAge: { warn: 730 } }, 'old'),
    expected: warns('key age', /age of the newest signing key 109\d/),
    peers: ask('old'),
  },
  {
    fault: 'the client is not in the audience of its token',
    monitor: provider({ ...withClient, introspect: true }, 'old'),
    expected: fails('introspection', 'data', /not active: .*audience/),
    peers: ask('old'),
  },
  {
    fault: 'the realm is disabled',
    mode: 'Standard',
    monitor: provider(),
    plant: async ({ change }) => {
      await change({ enabled: false })
      return () => change({ enabled: true })
    },
    expected: fails('token endpoint', 'data', /disabled realm/),
    peers: ask(),
  },
  {
    fault: 'the realm is disabled, asked as a client',
    monitor: provider(withClient),
    plant: async ({ change }) => {
      await change({ enabled: false })
      return () => change({ enabled: true })
    },
    expected: fails('token', 'any', /Realm not enabled|access_denied/),
    peers: ask(),
  },
  {
    fault: 'the realm was removed',
    monitor: provider({}, 'removed'),
    expected: fails('discovery', 'data', /no discovery document.*removed/),
    peers: ask('removed'),
  },
  {
    fault: 'the secret of the client was changed',
    monitor: provider({ ...withClient, clientSecret: { env: 'WRONG' } }),
    expected: fails('token', 'auth', /svc-probe/),
    peers: ask(),
  },
  {
    fault: 'the password of the account was changed',
    monitor: provider({ ...withPerson, password: { env: 'WRONG' } }),
    expected: fails('user', 'auth', /invalid_grant/),
    peers: ask(),
  },
  {
    fault: 'the public URL was changed',
    monitor: provider(),
    plant: async ({ change }) => {
      await change({ attributes: { frontendUrl: 'https://sso.example.org' } })
      return () => change({ attributes: { frontendUrl: '' } })
    },
    expected: fails('issuer', 'data', /reports the issuer "https:\/\/sso/),
    peers: ask(),
  },
  {
    fault: 'the server is frozen',
    monitor: provider({ timeout: '2s' }),
    plant: async ({ freeze, thaw }) => {
      freeze()
      return thaw
    },
    expected: fails('discovery', 'timeout', /sent nothing for [\d.]+ m?s/),
    peers: ask(),
  },
  {
    fault: 'the server is stopped',
    monitor: provider(),
    plant: async ({ stop }) => {
      await stop()
      return undefined
    },
    expected: fails('discovery', 'refused', /refused/),
    peers: ask(),
  },
]

corpus<Keycloak>({
  server: `Keycloak ${keycloakVersion()}`.trim(),
  env,
  missing: keycloakMissing ?? opensslMissing(),
  start: startKeycloak,
  rows,
})
