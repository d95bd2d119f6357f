import { linkFields } from '../../assert/link-settings.ts'
import { measureFields } from '../../assert/measure.ts'
import { addressChoices } from '../../engine/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What is sent, to whom, and how: all that a request needs, whichever kind makes it. */
const requestSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'What to ask, without user or password. {nonce} in its path or query, in headers and in body stands for 16 random characters, others for each connection; in header, contains, matches, json and xml it is the one that was sent',
  },
  method: {
    type: 'choice',
    values: ['GET', 'HEAD', 'POST'],
    default: 'GET',
    doc: 'POST is sent from Standard on, for it may write: Basic then only connects',
  },
  headers: { type: 'map', doc: 'Request headers; credentials belong into password or token' },
  body: { type: 'text', doc: 'Request body of a POST; name its Content-Type in headers' },
  username: { type: 'text', doc: 'User of HTTP basic sign-in, with password; sent from Standard on' },
  password: { type: 'secret', doc: 'Password of HTTP basic sign-in' },
  token: { type: 'secret', doc: 'Bearer token; sent from Standard on' },
  tokenHeader: { type: 'text', doc: 'Header that takes the bare token instead of Authorization, e.g. X-Api-Key' },
  insecureHttp: { type: 'flag', default: false, doc: 'Send password or token over http:// to another machine too' },
  redirects: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 10,
    doc: 'How many redirects are followed; another origin gets no headers and no credentials of ours, a POST follows none',
  },
  verify: { type: 'flag', default: true, doc: 'Ask nothing of a server whose certificate is not trusted' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
} as const satisfies SettingsSpec
export type RequestSettings = Values<typeof requestSettings>

/** What checks expect of the body also decides which content type the request asks for. */
export const bodySettings = {
  health: {
    type: 'flag',
    default: false,
    doc: 'The URL is the /healthcheck of another svc or of a server like it: its body must say Success',
  },
  json: {
    type: 'map',
    doc: 'Values expected in a JSON body: path such as $.a.b[0].c to text, /pattern/ or comparison such as >= 3. [*] is each element of a list, count(path) how many there are',
  },
  xml: {
    type: 'map',
    doc: 'Values expected in an XML body: path such as /VAST/Ad[0]/@id to text, /pattern/ or comparison. Without an index each element so called, count(path) how many there are',
  },
  measure: { type: 'groups', fields: measureFields, doc: 'Figures, dates and counts of a JSON or XML body' },
  links: {
    type: 'groups',
    fields: linkFields,
    doc: 'Which URLs in a JSON or XML body are asked too, and how; no others ever are',
  },
} as const satisfies SettingsSpec
export type BodySettings = Values<typeof bodySettings>

export const connectionSettings = {
  ...requestSettings,
  ...bodySettings,
  maxBody: { type: 'bytes', default: 1024 * 1024, doc: 'The answer is read up to here and judged by that' },
  addresses: {
    type: 'choice',
    values: addressChoices,
    doc: 'Which addresses of the name: `first`, `all` (each by itself) or `any` (in order, until one accepts). Without it: `first` in Basic, `all` from Standard on',
  },
} as const satisfies SettingsSpec
export type ConnectionSettings = Values<typeof connectionSettings>

/** Settings that several checks of the answer share. */
export const answerSettings = {
  judgeFrom: {
    type: 'choice',
    values: ['Basic', 'Standard'],
    default: 'Standard',
    doc: 'Mode from which on headers and body are judged. `Basic`: not of an answer that Basic gets without credentials, and no links',
  },
  codes: {
    type: 'map',
    doc: 'What messages begin with: `parse`, a path of json or xml, or the name of a measure to text',
  },
  version: {
    type: 'group',
    doc: 'Version that must be running; skew is deployment-related',
    fields: {
      expected: { type: 'text', required: true, doc: 'Text, /pattern/ or comparison' },
      json: { type: 'text', default: '$.version', doc: 'JSON path of the version in the body' },
      header: { type: 'text', doc: 'Response header that holds it instead' },
    },
  },
} as const satisfies SettingsSpec

/** Results about the answer itself, and about the answers that its links lead to. */
export const documentResults = {
  json: 'JSON values are as expected',
  xml: 'XML values are as expected',
  measure: 'Figures, dates and counts in the body are within their thresholds',
} as const
