import { loadXmlParser } from '../../assert/xml.ts'
import { includes, networkKind, ok } from '../../engine/index.ts'
import { urlTarget } from '../../net/http/route.ts'
import { checks } from './checks.ts'
import { asksPeer, openHttp, prepareHttp } from './connection.ts'
import { declineForPeer, declineOwnProcess } from './loop-guard.ts'
import { signsIn } from './request.ts'
import { connectionSettings } from './settings.ts'
import { validate } from './validate.ts'

export { declineForPeer, declineOwnProcess } from './loop-guard.ts'
export { reservedHeaders, routeOf, signsIn, urlProblem } from './request.ts'

/** Asks one URL and evaluates the answer. */
export default networkKind({
  name: 'http',
  title: 'An HTTP or HTTPS URL answers as expected',
  preload: loadXmlParser,
  settings: connectionSettings,
  target: urlTarget,
  addresses: (settings, mode) => settings.addresses ?? (includes(mode, 'Standard') ? 'all' : 'first'),
  signsIn,
  validate,
  declineRun: (settings, context) => (asksPeer(settings) ? declineForPeer(context) : undefined),
  declineAddress: (at, settings, context) => (asksPeer(settings) ? declineOwnProcess(at, context) : undefined),
  prepare: prepareHttp,
  connect: {
    results: { connect: 'The port accepts a connection; over https the server is who it should be' },
    open: openHttp,
    evaluate: ({ connection: { at, chain }, ms }) =>
      ok('connect', `${at.address} accepted${chain ? `, ${chain.protocol}` : ''}`, {
        measurement: { value: ms, unit: 'milliseconds' },
      }),
  },
  checks,
})
