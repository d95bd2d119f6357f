import { quote, sanitize } from '../../base/net/text.ts'
import { type SettingsSpec, statusMistake, type Values } from '../../base/settings/index.ts'
import { expectedValues, pathProblem, relativeProblem } from './document.ts'
import { measureFields, measureProblem } from './measure.ts'

/** The faults of a link, for `codes`. */
export const linkFaults = ['parse', 'status', 'timeout', 'type', 'deep', 'loop', 'unreachable', 'refused'] as const
export type LinkFault = (typeof linkFaults)[number]

/** One sort of URL in a JSON or XML answer, whose links are followed too. */
export const linkFields = {
  name: { type: 'text', required: true, doc: 'Name in messages: `media file`' },
  path: {
    type: 'text',
    observed: true,
    required: true,
    doc: 'Path of the URLs: $.Jobs[*].href in JSON, /VAST/Ad/Wrapper/x in XML',
  },
  url: { type: 'text', observed: true, doc: 'URL to request, if the path leads only to a part of it: `/Jobs/{}/Log`' },
  method: {
    type: 'choice',
    values: ['GET', 'HEAD'],
    default: 'GET',
    doc: 'Method of the request; links are only read',
  },
  status: { type: 'texts', mistake: statusMistake, needsOne: true, default: ['2xx'], doc: 'Accepted status codes' },
  type: { type: 'text', negatable: true, doc: 'Expected Content-Type, without parameters: text or /pattern/' },
  typeAt: { type: 'text', doc: 'Path of the expected Content-Type, relative to the element with the URL: @type' },
  plainHttp: { type: 'flag', default: false, doc: 'Request other origins over http:// too' },
  most: { type: 'integer', min: 1, max: 50, default: 10, doc: 'Maximum number of links per run' },
  levels: {
    type: 'integer',
    min: 1,
    max: 5,
    default: 1,
    doc: 'Depth: above 1, links of all entries in its answers are followed too',
  },
  within: { type: 'duration', default: 5_000, doc: 'How long each request may take' },
  json: { ...expectedValues('json'), doc: 'Values expected in its JSON' },
  xml: { ...expectedValues('xml'), doc: 'Values expected in its XML' },
  measure: { type: 'groups', fields: measureFields, doc: 'Figures, dates and counts of its JSON or XML' },
  codes: {
    type: 'map',
    doc: 'Prefixes of messages: parse, status, timeout, type, deep, loop, unreachable, refused, a path or a measure, to text',
  },
} as const satisfies SettingsSpec
export type LinkEntry = Values<typeof linkFields>

/** Why an entry is invalid, or undefined. */
export function linkProblem(entry: LinkEntry): string | undefined {
  const of = `links ${quote(entry.name, 64)}`
  const problem = pathProblem(entry.path) ?? (entry.typeAt === undefined ? undefined : relativeProblem(entry.typeAt))
  if (problem !== undefined) return `${of}: ${problem}`
  if (entry.path.startsWith('count(')) return `${of}: a count is not a URL`
  if (entry.url !== undefined && !entry.url.includes('{}')) return `${of}: url has no {} for the value at path`
  if (entry.within > 60_000) return `${of}: within is longer than 60 s`
  if (entry.method === 'HEAD' && (readsBody(entry) || entry.levels > 1)) return `${of}: HEAD has no body to evaluate`
  return assertionProblem(entry, of, linkFaults)
}

/** Whether the body of a link's response is needed. */
export const readsBody = (entry: LinkEntry): boolean =>
  entry.levels > 1 || entry.json !== undefined || entry.xml !== undefined || (entry.measure ?? []).length > 0

type Assertions = Pick<LinkEntry, 'json' | 'xml' | 'measure' | 'codes'>

/** Why assertions on a document that are valid by themselves cannot be combined, or undefined. */
export function assertionProblem(assertions: Assertions, of: string, faults: readonly string[]): string | undefined {
  const { json = {}, xml = {}, measure = [], codes = {} } = assertions
  for (const one of measure) {
    const problem = measureProblem(one)
    if (problem !== undefined) return `${of}: ${problem}`
  }
  const names = new Set([...faults, ...Object.keys(json), ...Object.keys(xml), ...measure.map(({ name }) => name)])
  const lost = Object.keys(codes).find((key) => !names.has(key))
  return lost === undefined
    ? undefined
    : `${of}: codes contains ${sanitize(lost, 64)}, which is not one of ${[...names].map((key) => sanitize(key, 64)).join(', ')}`
}

/** `IAB 401: ` or nothing: the start of a message about a fault, a path or a measure. */
export const codeOf =
  (codes: Readonly<Record<string, string>> | undefined) =>
  (key: string): string =>
    codes && Object.hasOwn(codes, key) ? `${sanitize(codes[key] ?? '', 80)}: ` : ''
