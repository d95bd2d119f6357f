import { unusedTrust } from '../../../base/net/trust.ts'
import { urlTarget } from '../../../base/net/url.ts'
import type { Values } from '../../../base/settings/index.ts'
import { ignoredHeaders, includes, networkKind } from '../../engine/index.ts'
import {
  algorithms,
  certificate,
  endpointCertificates,
  endpoints,
  evaluateDiscovery,
  issuer,
  keyAge,
  keys,
  tokenEndpoint,
} from './checks.ts'
import { openOidc } from './connection.ts'
import { listedPlace, type SharedSettings, sharedSettings } from './provider.ts'
import {
  claims,
  clientToken,
  clock,
  introspection,
  loadJose,
  onlyUserToken,
  refresh,
  secretRefusal,
  signature,
  userToken,
} from './token-checks.ts'

export { providerAt } from './provider.ts'
export { byClient } from './token.ts'

/** Why the settings cannot be combined, or undefined. */
function validate(
  settings: SharedSettings & Values<typeof introspection.settings> & Values<typeof secretRefusal.settings>,
): string | undefined {
  const url = new URL(settings.issuer)
  if (url.username !== '' || url.password !== '') return 'issuer contains a user: use clientId and clientSecret'
  if (/[?#]/.test(settings.issuer)) return 'issuer contains a query or a fragment, which an issuer cannot have'
  if (settings.issuer.includes('/.well-known/')) return 'issuer ends before /.well-known/'
  const odd = settings.endpointHosts?.find((entry) => listedPlace(entry) === undefined)
  if (odd !== undefined) return 'endpointHosts takes host or host:port, without https://'
  const { clientId, clientSecret, username, password, fingerprint, clientCert } = settings
  const unused = url.protocol === 'http:' ? unusedTrust({ fingerprint, clientCert }, 'an https issuer') : undefined
  if (unused !== undefined) return unused
  if (clientSecret !== undefined && clientId === undefined) return 'clientSecret needs a clientId'
  if (clientId !== undefined && clientSecret === undefined && username === undefined)
    return 'clientId needs a clientSecret'
  if (username !== undefined && password === undefined) return 'username needs a password'
  if (password !== undefined && username === undefined) return 'password needs a username'
  if (username !== undefined && clientId === undefined)
    return 'username needs a clientId: the password grant belongs to a client'
  if (settings.refusesWrongSecret && clientSecret === undefined)
    return 'refusesWrongSecret needs clientId and clientSecret'
  if (settings.introspect && clientSecret === undefined) return 'introspect needs clientId and clientSecret'
  return undefined
}

/** Basic and Standard send no credentials; Advanced requests tokens if a client is configured. */
export default networkKind({
  name: 'oidc',
  title: 'An OpenID Connect provider is correctly configured and issues tokens that can be verified',
  exposure:
    'Requests tokens as this client, and with password also as that user. Register a client of its own that no service trusts.',
  // Discovery recognizes an HTTP server, and an issuer may have any path of it.
  recognition: 'none',
  preload: loadJose,
  optionalParts: [{ part: 'User-Agent, Accept, Accept-Encoding', unasked: ignoredHeaders }],
  cost: {
    unit: 'HTTP requests',
    Basic: [1, 1],
    Standard: [3, 3],
    Advanced: [3, 3],
    adds: [{ setting: 'clientId', from: 'Advanced', signIns: 1 }],
    besides:
      'Each request has its own connection. Introspection, a user token and a wrong secret add requests of their own.',
  },
  settings: sharedSettings,
  eachAddressFrom: 'Standard',
  target: ({ issuer }) => urlTarget({ url: issuer }),
  signsIn: ({ clientId, clientSecret, username, password }, mode) =>
    clientId !== undefined && includes(mode, 'Advanced')
      ? { account: `${clientId} ${username ?? ''}`, secrets: [clientSecret, password] }
      : undefined,
  validate,
  connect: {
    results: { discovery: 'The discovery document is read in time and has all required members' },
    open: openOidc,
    evaluate: ({ connection: { address, answer } }, settings) => evaluateDiscovery(address, answer, settings),
  },
  checks: [
    issuer,
    endpoints,
    tokenEndpoint,
    algorithms,
    certificate,
    keys,
    keyAge,
    clientToken,
    onlyUserToken,
    signature,
    claims,
    clock,
    introspection,
    userToken,
    refresh,
    secretRefusal,
    endpointCertificates,
  ],
})
