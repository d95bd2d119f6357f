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
import type { Row } from './row.ts'

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
    env,
    monitor: provider({ ...withPerson, introspect: true, refusesWrongSecret: true }),
    expected: { state: 'healthy' },
    peers: ask(),
  },
  {
    fault: 'healthy, with a key that is three years old',
    env,
    monitor: provider(withClient, 'old'),
    expected: { state: 'healthy' },
    peers: ask('old'),
  },
  {
    fault: 'a key older than the threshold',
    env,
    monitor: provider({ ...withClient, keyAge: { warn: 730 } }, 'old'),
    expected: { state: 'warning', check: 'key age', says: /age of the newest signing key 109\d/ },
    peers: ask('old'),
  },
  {
    fault: 'the client is not in the audience of its token',
    env,
    monitor: provider({ ...withClient, introspect: true }, 'old'),
    expected: { state: 'unhealthy', check: 'introspection', fault: 'data', says: /not active: .*audience/ },
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
    expected: { state: 'unhealthy', check: 'token endpoint', fault: 'data', says: /disabled realm/ },
    peers: ask(),
  },
  {
    fault: 'the realm is disabled, asked as a client',
    env,
    monitor: provider(withClient),
    plant: async ({ change }) => {
      await change({ enabled: false })
      return () => change({ enabled: true })
    },
    expected: { state: 'unhealthy', check: 'token', says: /Realm not enabled|access_denied/ },
    peers: ask(),
  },
  {
    fault: 'the realm was removed',
    monitor: provider({}, 'removed'),
    expected: { state: 'unhealthy', check: 'discovery', fault: 'data', says: /no discovery document.*removed/ },
    peers: ask('removed'),
  },
  {
    fault: 'the secret of the client was changed',
    env,
    monitor: provider({ ...withClient, clientSecret: { env: 'WRONG' } }),
    expected: { state: 'unhealthy', check: 'token', fault: 'auth', says: /svc-probe/ },
    peers: ask(),
  },
  {
    fault: 'the password of the account was changed',
    env,
    monitor: provider({ ...withPerson, password: { env: 'WRONG' } }),
    expected: { state: 'unhealthy', check: 'user', fault: 'auth', says: /invalid_grant/ },
    peers: ask(),
  },
  {
    fault: 'the public URL was changed',
    monitor: provider(),
    plant: async ({ change }) => {
      await change({ attributes: { frontendUrl: 'https://sso.example.org' } })
      return () => change({ attributes: { frontendUrl: '' } })
    },
    expected: { state: 'unhealthy', check: 'issuer', fault: 'data', says: /reports the issuer "https:\/\/sso/ },
    peers: ask(),
  },
  {
    fault: 'the server is frozen',
    monitor: provider({ timeout: '2s' }),
    plant: async ({ freeze, thaw }) => {
      freeze()
      return thaw
    },
    expected: { state: 'unhealthy', check: 'discovery', fault: 'timeout', says: /sent nothing for [\d.]+ m?s/ },
    peers: ask(),
  },
  {
    fault: 'the server is stopped',
    monitor: provider(),
    plant: async ({ stop }) => {
      await stop()
      return undefined
    },
    expected: { state: 'unhealthy', check: 'discovery', fault: 'refused', says: /refused/ },
    peers: ask(),
  },
]

corpus<Keycloak>({
  server: `Keycloak ${keycloakVersion()}`.trim(),
  missing: keycloakMissing ?? opensslMissing(),
  start: startKeycloak,
  stop: (server) => server.remove(),
  rows,
})
