import { linkFields } from '../../assert/link-settings.ts'
import { measureFields } from '../../assert/measure.ts'
import { addressChoices } from '../../engine/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What svc.yaml may say of an http monitor. */
export const httpSettings = {
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
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 5_000 },
    doc: 'How long connection, redirects and the whole answer may take',
  },
  status: {
    type: 'texts',
    default: ['<500'],
    doc: 'Status codes that are well: 200, 2xx, 200-299, <500. With credentials, Basic asks without them and accepts <500',
  },
  header: { type: 'map', doc: 'Response headers expected: name to text, /pattern/ or comparison such as >= 3' },
  contains: { type: 'text', doc: 'Text that the body contains' },
  matches: {
    type: 'text',
    doc: 'Regular expression that the first 64 KiB of the body match; given up after 250 ms',
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
  linkHosts: {
    type: 'texts',
    doc: 'Hosts that links may lead to, beside our own: cdn.example.com, host:8443, *.example.com. Without it, public addresses on the usual ports',
  },
  codes: {
    type: 'map',
    doc: 'What messages begin with: `parse`, a path of json or xml, or the name of a measure to text',
  },
  health: {
    type: 'flag',
    default: false,
    doc: 'The URL is the /healthcheck of another svc or of a server like it: its body must say Success',
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
  judgeFrom: {
    type: 'choice',
    values: ['Basic', 'Standard'],
    default: 'Standard',
    doc: 'Mode from which on headers and body are judged. `Basic`: not of an answer that Basic gets without credentials, and no links',
  },
  maxBody: { type: 'bytes', default: 1024 * 1024, doc: 'The answer is read up to here and judged by that' },
  redirects: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 10,
    doc: 'How many redirects are followed; another origin gets no headers and no credentials of ours, a POST follows none',
  },
  addresses: {
    type: 'choice',
    values: addressChoices,
    doc: 'Which addresses of the name: `first`, `all` (each by itself) or `any` (in order, until one accepts). Without it: `first` in Basic, `all` from Standard on',
  },
  verify: { type: 'flag', default: true, doc: 'Ask nothing of a server whose certificate is not trusted' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
  certificate: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 20, limit: 3 },
    doc: 'Days that every certificate of the chain has left at least (https)',
  },
  clock: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 2_000, limit: 30_000 },
    doc: 'How far the Date header may be from our clock; `off` where another monitor of the same server looks at it',
  },
} as const satisfies SettingsSpec
export type HttpSettings = Values<typeof httpSettings>
