import { sanitize } from '../../../base/net/text.ts'
import { urlTarget } from '../../../base/net/url.ts'
import type { Values } from '../../../base/settings/index.ts'
import { patternProblem, textIn } from '../../assert/expectation.ts'
import { assertionProblem, linkProblem } from '../../assert/link-settings.ts'
import { holdsNonce } from '../../assert/nonce.ts'
import { loadXmlParser } from '../../assert/xml.ts'
import {
  evaluateAccepted,
  ignoredHeaders,
  includes,
  type JoinedSettings,
  networkKind,
  type ReachSettings,
} from '../../engine/index.ts'
import { byCertificateName, healthPageOf, httpServer, pageOf, trustOf } from '../../recognition/index.ts'
import { checks } from './checks.ts'
import { asksPeer, connectionSettings, openHttp, prepareHttp, readsJson, readsXml } from './connection.ts'
import { hostProblem } from './links.ts'
import { missingToken, oauth2Problem } from './oauth2.ts'
import { declineForPeer, declineOwnProcess, reservedHeaders, signsIn, urlProblem } from './request.ts'

export {
  declineForPeer,
  declineOwnProcess,
  openRequest,
  type RequestConnection,
  reservedHeaders,
  routeOf,
  signsIn,
  urlProblem,
} from './request.ts'

/** Requests one URL and evaluates the answer. */
export default networkKind({
  name: 'http',
  title: 'An HTTP or HTTPS URL answers as expected',
  exposure: 'What the site lets the account or token do. Use one that may read this URL and nothing else.',
  recognition: [
    {
      ...httpServer,
      propose: async (server, name) => {
        const at = await byCertificateName(server)
        const { settings, note } = trustOf(at)
        const { product, ...page } = (await healthPageOf(at)) ?? { url: pageOf(at).page }
        const title = product === undefined ? name : `${product}-${at.port}`
        return { entry: { kind: 'http', name: title, ...page, ...settings }, note }
      },
    },
  ],
  preload: loadXmlParser,
  optionalParts: [{ part: 'User-Agent, Accept, Accept-Encoding, Cache-Control', unasked: ignoredHeaders }],
  cost: {
    unit: 'HTTP requests',
    Basic: [1, 1],
    Standard: [1, 1],
    Advanced: [1, 1],
    adds: [
      { setting: 'token', from: 'Standard', signIns: 1 },
      { setting: 'password', from: 'Standard', signIns: 1 },
      { setting: 'oauth2', from: 'Standard', signIns: 1 },
    ],
    besides:
      'Each link that `links` selects adds one connection and one request to the server that it names, and so does each redirect. With `method: POST`, a Basic run connects and sends no request.',
  },
  settings: connectionSettings,
  target: urlTarget,
  eachAddressFrom: 'Standard',
  signsIn,
  validate,
  declineRun: async (settings, context) => {
    const declined = asksPeer(settings) ? declineForPeer(context) : undefined
    if (declined || settings.oauth2 === undefined || !includes(context.mode, 'Standard')) return declined
    return await missingToken(settings.oauth2, settings.caFile, context)
  },
  declineAddress: (at, settings, context) => (asksPeer(settings) ? declineOwnProcess(at, context) : undefined),
  prepare: prepareHttp,
  connect: {
    results: { connect: 'The port accepts a connection, over https with a trusted certificate' },
    open: openHttp,
    evaluate: ({ connection: { at, chain }, ms }) => evaluateAccepted('connect', { address: at.address, chain, ms }),
  },
  checks,
})

type HttpSettings = Values<JoinedSettings<typeof connectionSettings & ReachSettings, typeof checks>>

/**
 * The token may not use any of these either. It may use Authorization or Cookie, because some servers expect a bare
 * token there.
 */
const ownHeaders = new Set([...reservedHeaders, 'host'].filter((name) => name !== 'authorization' && name !== 'cookie'))

/** Why the settings cannot be combined, or undefined. */
function validate(settings: HttpSettings): string | undefined {
  const { method, username, url, password, token, tokenHeader, oauth2, headers, body } = settings
  const urlMistake = urlProblem(settings)
  if (urlMistake !== undefined) return urlMistake
  if (body !== undefined && method !== 'POST') return 'a body needs method: POST'
  if (settings.samples !== undefined && method === 'POST')
    return 'samples would send the POST several times: use a request that changes nothing'
  if ([token, password, oauth2].filter((one) => one !== undefined).length > 1)
    return 'token, password and oauth2 exclude each other'
  const oauth2Mistake = oauth2 && oauth2Problem(oauth2, url)
  if (oauth2Mistake !== undefined) return oauth2Mistake
  if (password !== undefined && username === undefined) return 'password needs a username'
  const { header, contains, matches, json, xml } = settings
  if (holdsNonce(header, contains, matches, json, xml) && !holdsNonce(url, headers, body)) {
    return 'expects {nonce}, but neither url nor headers nor body sends it: add it to one of them'
  }
  if (username?.includes(':')) return 'a username of HTTP basic sign-in cannot contain a colon'
  const readsBody =
    settings.health || contains !== undefined || matches !== undefined || readsJson(settings) || readsXml(settings)
  if (method === 'HEAD' && readsBody) return 'method: HEAD has no body to evaluate'
  const names = Object.keys(headers ?? {})
  const hasSecret = password !== undefined || token !== undefined || oauth2 !== undefined
  // Many servers may share one address and be distinguished by Host. The secret is only for the one in `url`.
  if (hasSecret && names.some((name) => name.toLowerCase() === 'host'))
    return 'headers may not set Host together with a password or token'
  if (tokenHeader !== undefined && ownHeaders.has(tokenHeader.toLowerCase())) {
    return `tokenHeader may not be ${sanitize(tokenHeader, 64)}`
  }
  const reserved = names.find((name) => reservedHeaders.has(name.toLowerCase()))
  if (reserved === undefined) return documentProblem(settings)
  const advice = reserved.toLowerCase() === 'authorization' ? ': use password or token' : ''
  return `headers may not set ${sanitize(reserved, 64)}${advice}`
}

function documentProblem(settings: HttpSettings): string | undefined {
  const { links = [], linkHosts, matches } = settings
  const linkMistake = links.map(linkProblem).find((problem) => problem !== undefined)
  if (linkMistake !== undefined) return linkMistake
  if (linkHosts !== undefined && links.length === 0) return 'linkHosts needs links'
  const pattern = matches === undefined ? undefined : patternProblem(textIn(matches))
  if (pattern !== undefined) return `matches: ${pattern}`
  const host = linkHosts?.map(hostProblem).find((problem) => problem !== undefined)
  return host ?? assertionProblem(settings, 'this monitor', ['parse'])
}
