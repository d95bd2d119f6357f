import { Fault } from '../../base/errors.ts'
import { type NameStyle, styleFrom } from '../index.ts'
import { fold } from './fields.ts'
import type { FormatName } from './format.ts'

/** A media type or disposition: its value and the names of its parameters in lower case. */
export type HeaderValue = { readonly value: string; readonly parameters: ReadonlyMap<string, string> }

const parameter = /[ \t]*;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*)?/y

/** Parses `value; name=token; name="quoted"`; undefined when the parameters are malformed. */
export const parseHeaderValue = (header: string): HeaderValue | undefined => {
  const semicolon = header.indexOf(';')
  const value = (semicolon === -1 ? header : header.slice(0, semicolon)).trim().toLowerCase()
  const parameters = new Map<string, string>()
  parameter.lastIndex = semicolon === -1 ? header.length : semicolon
  while (parameter.lastIndex < header.length) {
    const match = parameter.exec(header)
    if (!match) return undefined
    const [, name, quoted, token = ''] = match
    if (name !== undefined) parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token)
  }
  return { value, parameters }
}

/** Everything in a request that affects the format of its answer. */
export type FormatRequest = {
  readonly method: string
  /** The path's suffix, already validated by `formatNamed`. */
  readonly suffix?: FormatName | undefined
  readonly format?: string | undefined
  readonly accept?: string | undefined
  readonly callback?: string | undefined
  /** The value of `?jsconfig=`. */
  readonly jsconfig?: string | undefined
  /** The default name style. If absent, the names of the interface. */
  readonly names?: NameStyle | undefined
}

export type Negotiated = {
  readonly format: FormatName
  readonly callback?: string
  /** The name style of JSON answers. */
  readonly names: NameStyle
}

const mediaTypes: Readonly<Record<FormatName, readonly [string, ...string[]]>> = {
  json: ['application/json'],
  csv: ['text/csv'],
  jsv: ['application/jsv', 'text/jsv'],
}
/** In order of preference: the first one wins when a client's qualities are equal. */
const formatNames = Object.keys(mediaTypes) as readonly FormatName[]

/**
 * The format of a suffix or `?format=`, in any letter case. Undefined for unknown names.
 *
 * @example
 * ```ts
 * formatNamed('CSV') // 'csv'
 * formatNamed('xml') // undefined
 * ```
 */
export const formatNamed = (name: string): FormatName | undefined => {
  const folded = fold(name)
  return formatNames.find((name) => name === folded)
}

/**
 * Precedence: suffix > callback > `?format=` > Accept > JSON (F1). Without an acceptable format the answer is JSON.
 * Throws a 406 for a client that accepts XML only: it would take JSON for an answer without values. Throws a 400 for a
 * callback that is not a dotted identifier (F2). Both are answered in plain JSON.
 *
 * @example
 * ```ts
 * negotiate({ method: 'GET', accept: 'text/csv, application/json;q=0.5' }) // { format: 'csv', names: 'PascalCase' }
 * ```
 */
export const negotiate = ({
  method,
  suffix,
  format,
  accept,
  callback,
  jsconfig,
  names: usual,
}: FormatRequest): Negotiated => {
  const names = styleFrom(jsconfig ?? '') ?? usual ?? 'PascalCase'
  const mayCallBack = (method === 'GET' || method === 'HEAD') && (suffix === undefined || suffix === 'json')
  if (mayCallBack && callback !== undefined && callback !== '') {
    return { format: 'json', callback: checkedCallback(callback), names }
  }
  return { format: suffix ?? formatNamed(format ?? '') ?? accepted(accept ?? ''), names }
}

const callbackName = /^[A-Za-z_$][\w$]{0,49}(?:\.[A-Za-z_$][\w$]{0,49})*$/

const checkedCallback = (name: string): string => {
  if (callbackName.test(name)) return name
  throw new Fault('BadRequest', 'The callback must be one or more dotted identifiers of at most 50 characters each')
}

/**
 * The answer as a function call (F2). Escapes U+2028 and U+2029, which end lines in older JavaScript but not in JSON.
 *
 * @example
 * ```ts
 * jsonp('show', '{"ok":true}') // 'show({"ok":true})'
 * ```
 */
export const jsonp = (callback: string, json: string): string =>
  `${callback}(${json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')})`

/** The format with the highest quality. The first one listed wins a tie. */
const accepted = (accept: string): FormatName => {
  const ranges = accept
    .split(',')
    .map(parseHeaderValue)
    .filter((range) => range !== undefined)
  const liked = formatNames
    .flatMap((name) => mediaTypes[name].map((type) => ({ name, ...preference(ranges, type) })))
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality || a.place - b.place)
  if (liked[0] === undefined && isXmlOnly(ranges)) throw onlyXml()
  return liked[0]?.name ?? 'json'
}

const xmlTypes: ReadonlySet<string> = new Set(['application/xml', 'text/xml'])

const isXmlOnly = (ranges: readonly HeaderValue[]): boolean => {
  const accepted = ranges.filter(({ value, parameters }) => value !== '' && Number(parameters.get('q') ?? 1) > 0)
  return accepted.length > 0 && accepted.every(({ value }) => xmlTypes.has(value))
}

const onlyXml = (): Fault =>
  new Fault('NotAcceptable', 'XML is not offered: accept application/json, application/jsv or text/csv')

/** The most specific range that matches a type decides its quality (RFC 9110, 12.5.1). */
const preference = (ranges: readonly HeaderValue[], type: string): { quality: number; place: number } => {
  for (const pattern of [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*']) {
    const place = ranges.findIndex(({ value }) => value === pattern)
    if (place !== -1) return { quality: Number(ranges[place]?.parameters.get('q') ?? 1), place }
  }
  return { quality: 0, place: 0 }
}
