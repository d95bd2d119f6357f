import { asksPeerAt } from '../../net/http/route.ts'
import { ExecutionMode, ServerType } from '../../protocol/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'
import type { RequestSettings } from '../http/index.ts'

/** What svc.yaml may say of a svc monitor. */
export const peerSettings = {
  url: { type: 'url', protocols: ['http', 'https'], required: true, doc: 'The server, or its /healthcheck' },
  type: { type: 'choice', values: ServerType.values, default: 'App', doc: 'Which server type is asked for there' },
  mode: {
    type: 'choice',
    values: ExecutionMode.values,
    default: 'Standard',
    doc: 'How deep it is asked at most; a shallower run of ours asks no deeper than itself',
  },
  token: { type: 'secret', doc: 'Token or key there, with which it tells details; sent from Standard on' },
  insecureHttp: { type: 'flag', default: false, doc: 'Send the token over http:// to another machine too' },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: {},
    doc: 'How long the whole answer may take; when left out, as long as this monitor may',
  },
  suppressDeployment: {
    type: 'flag',
    default: false,
    doc: 'Ask it to let deployment-related failures of its own pass',
  },
  verify: { type: 'flag', default: true, doc: 'Ask nothing of a server whose certificate is not trusted' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
} as const satisfies SettingsSpec
export type PeerSettings = Values<typeof peerSettings>

const order = ExecutionMode.values

/** The mode that is asked for there, of a run of ours in `mode`. */
export const askedMode = (given: PeerSettings, mode: ExecutionMode): ExecutionMode =>
  order[Math.min(order.indexOf(given.mode), order.indexOf(mode))] ?? 'Basic'

/** Where it is asked, of a run of ours in `mode`. Every health result there is answered with 200. */
export function peerUrl(given: PeerSettings, mode: ExecutionMode): URL {
  const url = new URL(given.url)
  if (!asksPeerAt(url)) url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/healthcheck`
  url.searchParams.set('ExecutionMode', askedMode(given, mode))
  url.searchParams.set('ServerType', given.type)
  url.searchParams.set('SuppressErrorCodes', 'true')
  if (given.suppressDeployment) url.searchParams.set('SuppressDeploymentErrors', 'true')
  return url
}

/** Bytes of an answer that are read. */
export const maxBody = 1024 * 1024

/** The settings of the request. `headers` go to that server only. */
export const overHttp = (
  given: PeerSettings,
  url: URL,
  headers: Readonly<Record<string, string>>,
): RequestSettings => ({
  url: url.href,
  method: 'GET',
  headers,
  token: given.token,
  insecureHttp: given.insecureHttp,
  redirects: 0,
  verify: given.verify,
  caFile: given.caFile,
})
