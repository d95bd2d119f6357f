import { type CheckContext, monitorKind } from '../../engine/index.ts'
import { evaluateOidc } from './judge.ts'
import { loadJose } from './jwt.ts'
import { type OidcSettings, oidcContradiction, oidcSettings, placeOf } from './settings.ts'
import { type OidcSeen, signsInToOidc, visitOidc } from './visit.ts'

/** Basic and Standard read what is public; Advanced gets tokens, where a client is configured. */
export default monitorKind({
  name: 'oidc',
  title: 'An OpenID Connect provider is sound, and gives tokens that can be verified',
  preload: loadJose,
  settings: oidcSettings,
  checks: [
    { name: 'discovery', depth: 'Basic', doc: 'The discovery document is there, in time, with all that it must say' },
    { name: 'issuer', depth: 'Standard', doc: 'It says the issuer that clients have, to the last slash' },
    {
      name: 'endpoints',
      depth: 'Standard',
      doc: "Every endpoint is https, and at the issuer's host or one of `endpointHosts`",
    },
    {
      name: 'keys',
      depth: 'Standard',
      doc: 'The keys can be read and are sound: told apart, strong, public, one to verify with',
    },
    { name: 'certificate', depth: 'Standard', doc: 'Every certificate of the chain stays valid long enough (https)' },
    { name: 'key age', depth: 'Advanced', doc: 'The newest signing key is not too old, where keys have certificates' },
    {
      name: 'token',
      depth: 'Advanced',
      doc: 'The client gets a token by its credentials, in time',
      when: ['clientSecret'],
    },
    { name: 'user', depth: 'Advanced', doc: 'The account gets a token by its password, in time', when: ['user'] },
    {
      name: 'signature',
      depth: 'Advanced',
      doc: 'A signed token verifies with a key of the provider',
      when: ['clientId'],
    },
    {
      name: 'claims',
      depth: 'Advanced',
      doc: 'A signed token is from this issuer, for `audience`, and in force',
      when: ['clientId'],
    },
    { name: 'clock', depth: 'Advanced', doc: "The provider's clock agrees with ours", when: ['clientId'] },
    {
      name: 'introspection',
      depth: 'Advanced',
      doc: 'The provider takes its token for an active one',
      when: ['introspect'],
    },
    {
      name: 'refresh',
      depth: 'Advanced',
      doc: 'A refresh token, where one came along, gives a new token',
      when: ['clientId'],
    },
    { name: 'wrong secret', depth: 'Advanced', doc: 'A wrong secret is refused', when: ['refusesWrongSecret'] },
  ],
  target: ({ issuer }) => (URL.canParse(issuer) ? placeOf(new URL(issuer)) : {}),
  signsIn: signsInToOidc,
  validate: oidcContradiction,
  observe: (given: OidcSettings, context: CheckContext): AsyncGenerator<OidcSeen> => visitOidc(given, context),
  evaluate: evaluateOidc,
})
