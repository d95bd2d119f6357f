import { hostPort } from '../../../base/net/connect.ts'
import { unusedTrust } from '../../../base/net/trust.ts'
import { urlTarget } from '../../../base/net/url.ts'
import type { Values } from '../../../base/settings/index.ts'
import { includes, networkKind } from '../../engine/index.ts'
import { bytes, proposedPassword, trustOf } from '../../recognition/index.ts'
import { clock, passwordExpiry, replication } from './active-directory.ts'
import {
  bind,
  certificate,
  entry,
  evaluateConnect,
  lastChange,
  passwordRefusal,
  rootEntry,
  search,
  synchronized,
} from './checks.ts'
import { connectLdap, connectSettings, isLdaps, type LdapConnectSettings, prepareLdap } from './connection.ts'
import { databaseSpace, readOnly } from './databases.ts'
import { agreements, isSameName, provider } from './provider.ts'
import { checkFilter, loadLdapts } from './session.ts'

/** Why the settings cannot be combined, or undefined. */
function validate(settings: LdapConnectSettings & Values<typeof passwordRefusal.settings>): string | undefined {
  const { username, password, startTls, fingerprint, clientCert } = settings
  const url = new URL(settings.url)
  if (url.username !== '') return 'url contains a user: use username and password'
  if (!/^\/?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    return 'url contains more than host and port: put the entry in base'
  }
  if (isLdaps(settings) && startTls) return 'startTls is for ldap://: ldaps:// begins with TLS'
  const unused =
    isLdaps(settings) || startTls ? undefined : unusedTrust({ fingerprint, clientCert }, 'ldaps:// or startTls')
  if (unused !== undefined) return unused
  if (username !== undefined && password === undefined) return 'username needs a password'
  if (password !== undefined && username === undefined) return 'password needs a username'
  const dedicated = settings.refusesWrongPassword?.username
  if (dedicated !== undefined && username !== undefined && isSameName(dedicated, username)) {
    return 'refusesWrongPassword has the same account as username, which wrong passwords would lock: use a dedicated account'
  }
  return undefined
}

/** An anonymous search of the root DSE that requests no attributes (`1.1`). */
const rootDse = bytes(
  '30 2a 020101 63 25 0400 0a0100 0a0100 020100 020105 0101ff 87 0b 6f626a656374436c617373 3005 0403 312e31',
)
/** Message 1 with an entry or the end of the results: never an echo of the request. */
const rootDseReplies = [bytes('02010164'), bytes('02010165')]

/** Signs in as the mode allows, and only reads. */
export default networkKind({
  name: 'ldap',
  title: 'An LDAP directory (OpenLDAP, 389-ds, Active Directory) accepts sign-ins and searches',
  exposure:
    'Reads the entries and attributes named below, and writes nothing. Many directories let every account read all entries by default.',
  recognition: [
    {
      name: 'ldap',
      greeting: rootDse,
      underTls: true,
      is: (reply) => reply[0] === 0x30 && rootDseReplies.some((start) => reply.subarray(2, 12).includes(start)),
      pool: 'alike',
      propose: (server, name) => {
        const url = `${server.tls ? 'ldaps' : 'ldap'}://${hostPort(server.host, server.port)}`
        const { settings, note } = trustOf(server)
        const entry = { kind: 'ldap', name, url, ...settings }
        return { entry, note, deeper: { ...entry, user: 'cn=monitor,dc=example,dc=org', password: proposedPassword } }
      },
    },
  ],
  preload: loadLdapts,
  optionalParts: [
    {
      part: 'control of the password policy (1.3.6.1.4.1.42.2.27.8.5.1)',
      after: '`supportedControl` of the root entry lists it, read before the sign-in',
    },
    {
      part: 'StartTLS',
      unasked: 'The setting `startTls` demands it, and a server without it answers protocolError (RFC 4511, 4.14)',
    },
  ],
  cost: {
    unit: 'operations',
    Basic: [1, 1],
    Standard: [1, 4],
    Advanced: [1, 4],
    adds: [
      { setting: 'username', from: 'Standard', requests: 2, signIns: 1 },
      { setting: 'entry', from: 'Advanced', requests: 1 },
      { setting: 'refusesWrongPassword', from: 'Advanced', connections: 2, requests: 2, signIns: 2 },
    ],
    besides:
      'The figures are those of OpenLDAP; checks of Active Directory and 389-ds add searches. Comparing with a provider adds a connection and a sign-in there.',
  },
  settings: connectSettings,
  target: urlTarget,
  signsIn: ({ username, password, refusesWrongPassword }, mode) =>
    (username !== undefined && includes(mode, 'Standard')) ||
    (refusesWrongPassword !== undefined && includes(mode, 'Advanced'))
      ? { account: username ?? '', secrets: [password], result: 'bind' }
      : undefined,
  validate,
  parse: async ({ entry }: { readonly entry?: { readonly filter: string } | undefined }) => {
    if (entry) await checkFilter(entry.filter)
  },
  prepare: prepareLdap,
  connect: {
    results: { connect: 'The port accepts a connection, with TLS as configured, in time' },
    open: connectLdap,
    evaluate: ({ connection, ms }, { latency }) => evaluateConnect(connection, ms, latency),
  },
  checks: [
    rootEntry,
    certificate,
    bind,
    search,
    readOnly,
    databaseSpace,
    provider,
    agreements,
    clock,
    passwordExpiry,
    entry,
    synchronized,
    replication,
    lastChange,
    passwordRefusal,
  ],
})
