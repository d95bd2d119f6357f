import { type CheckContext, monitorKind } from '../../engine/index.ts'
import type { Values } from '../../settings/index.ts'
import { evaluateLdap } from './judge.ts'
import { loadLdapts } from './session.ts'
import { ldapContradiction, ldapPlace, ldapSettings } from './settings.ts'
import { type LdapSeen, signsInToLdap, visitLdap } from './visit.ts'

/** Signs in as its mode allows, and only reads. */
export default monitorKind({
  name: 'ldap',
  title: 'An LDAP directory (OpenLDAP, Active Directory) lets in, and finds',
  preload: loadLdapts,
  settings: ldapSettings,
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The port accepts a connection, with TLS as configured, in time' },
    { name: 'rootDSE', depth: 'Basic', doc: 'The root entry is shown; strangers may be refused it' },
    { name: 'certificate', depth: 'Standard', doc: 'Every certificate of the chain stays valid long enough' },
    { name: 'bind', depth: 'Standard', doc: 'With `user`: the account is let in, in time', when: ['user'] },
    { name: 'search', depth: 'Standard', doc: '`base`, or the first entry that the server names, is found in time' },
    { name: 'entry', depth: 'Advanced', doc: 'With `entry`: the search finds what it must', when: ['entry'] },
    { name: 'synchronized', depth: 'Advanced', doc: 'A domain controller has finished its replication' },
    {
      name: 'last change',
      depth: 'Advanced',
      doc: 'With `lastChange`: the newest change is not too old',
      when: ['lastChange'],
    },
    {
      name: 'wrong password',
      depth: 'Advanced',
      doc: 'With `refusesWrongPassword`: a wrong password of that account is refused',
      when: ['refusesWrongPassword'],
    },
  ],
  target: (given) => (URL.canParse(given.url) ? ldapPlace(given) : {}),
  signsIn: signsInToLdap,
  validate: ldapContradiction,
  observe: (given: Values<typeof ldapSettings>, context: CheckContext): AsyncGenerator<LdapSeen> =>
    visitLdap(given, context),
  evaluate: evaluateLdap,
})
