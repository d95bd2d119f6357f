import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What svc.yaml may say of an ldap monitor. */
export const ldapSettings = {
  url: {
    type: 'url',
    protocols: ['ldap', 'ldaps'],
    required: true,
    doc: 'ldaps://host, or ldap://host:port, and nothing behind that',
  },
  startTls: { type: 'flag', default: false, doc: 'Turn an ldap:// connection into TLS before anything else is said' },
  servername: { type: 'text', doc: "Name to find in the certificate, where it is not the URL's" },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
  insecureLdap: { type: 'flag', default: false, doc: 'Send a password over plain ldap:// to another machine too' },
  user: {
    type: 'text',
    doc: 'Who signs in from Standard on, with password: a distinguished name; for Active Directory also user@domain. Without it, strangers are what is tried',
  },
  password: { type: 'secret', doc: "The user's password" },
  base: {
    type: 'text',
    doc: 'Entry that must be found, e.g. dc=example,dc=org. Without it, the first that the server names',
  },
  entry: {
    type: 'group',
    doc: 'What a search in Advanced must find',
    fields: {
      filter: { type: 'text', required: true, doc: 'RFC 4515, e.g. (uid=alice)' },
      base: { type: 'text', doc: 'Where the search begins; without it, at `base`' },
      atLeast: { type: 'integer', default: 1, min: 1, max: 1_000, doc: 'How many entries it must find' },
    },
  },
  lastChange: {
    type: 'threshold',
    unit: 'duration',
    doc: 'How old the newest change (contextCSN of `base`) may be: a replica that hears nothing stays behind. Left out without it',
  },
  refusesWrongPassword: {
    type: 'group',
    doc: 'In Advanced, a wrong password must be refused. Only with an account made for this: it may get locked',
    fields: {
      user: { type: 'text', required: true, doc: 'The dedicated account, never that of `user`' },
      password: {
        type: 'secret',
        doc: 'Its right password, shown after the wrong one: it must be let in, which also resets its count of failures',
      },
    },
  },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the connection, the sign-in and each search may take',
  },
  certificate: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 20, limit: 3 },
    doc: 'Days that every certificate of the chain has left at least',
  },
} as const satisfies SettingsSpec
export type LdapSettings = Values<typeof ldapSettings>

/** Where a URL leads. The scheme is not one that URLs know: the host is taken as it was written. */
export function ldapPlace(given: Pick<LdapSettings, 'url'>): { readonly host: string; readonly port: number } {
  const url = new URL(given.url)
  const usual = url.protocol === 'ldaps:' ? 636 : 389
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port) || usual }
}

export const isLdaps = (given: Pick<LdapSettings, 'url'>): boolean => new URL(given.url).protocol === 'ldaps:'

/** Why the settings cannot be used together, or undefined. */
export function ldapContradiction(given: LdapSettings): string | undefined {
  const url = new URL(given.url)
  if (url.username !== '') return 'url holds a user: use user and password'
  if (!/^\/?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    return 'url holds more than host and port: name the entry in base'
  }
  if (isLdaps(given) && given.startTls) return 'startTls is for ldap://: ldaps:// begins with TLS'
  if (given.user !== undefined && given.password === undefined) return 'user needs a password'
  if (given.password !== undefined && given.user === undefined) return 'password needs a user'
  const dedicated = given.refusesWrongPassword?.user
  if (dedicated !== undefined && given.user !== undefined && sameName(dedicated, given.user)) {
    return 'refusesWrongPassword names the account of user: wrong passwords would lock it. Make an account for this'
  }
  return undefined
}

/** Spaces around commas and equals signs, and letter case, make no other name. */
const sameName = (one: string, other: string): boolean => plain(one) === plain(other)
const plain = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .split(/([,=+])/)
    .map((part) => part.trim())
    .join('')
