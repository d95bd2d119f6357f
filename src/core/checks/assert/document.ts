import { exactJson } from '../../base/json.ts'
import { quote, type Redact, sanitize } from '../../base/net/text.ts'
import type { Expectation } from '../../base/settings/index.ts'
import {
  expectationMistake,
  isAbsence,
  isNegation,
  showExpectation,
  UnjudgedError,
  UnseenError,
  unmetEach,
} from './expectation.ts'
import type { XmlElement, XmlRead } from './xml.ts'

/** The name after a dot may hold what no other part of a path begins with: `$.database:ping`, `$.build version`. */
const jsonStep = () =>
  /\.(?!\d+(?:[.[]|$))([\p{L}\p{N}_$@:-]+(?: +[\p{L}\p{N}_$@:-]+)*)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]/uy

/**
 * The steps of a JSON path: `$.a.b[0].c`, `$['a.b']`. One path names one value, so there are no wildcards, filters or
 * slices, and no number after a dot, which might be a name or an index. Undefined for an invalid path.
 *
 * @example
 * ```ts
 * parseJsonPath('$.items[0].name') // ['items', 0, 'name']
 * parseJsonPath('items') // undefined
 * ```
 */
export function parseJsonPath(path: string): readonly (string | number)[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: (string | number)[] = []
  const pattern = jsonStep()
  let at = 1
  while (at < path.length) {
    pattern.lastIndex = at
    const step = pattern.exec(path)
    if (!step) return undefined
    const [whole, name, index, single, double] = step
    steps.push(index === undefined ? (name ?? single ?? double ?? '') : Number(index))
    at += whole.length
  }
  return steps
}

/** The value at a path, wrapped in an object. Undefined when nothing is there. */
export function readJsonPath(
  document: unknown,
  steps: readonly (string | number)[],
): { readonly value: unknown } | undefined {
  let value = document
  for (const name of steps) {
    if (typeof value !== 'object' || value === null) return undefined
    if (typeof name === 'number' ? !Array.isArray(value) : Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Record<string | number, unknown>)[name]
  }
  return { value }
}

/**
 * All values at a path that may contain `[*]`, each element of a list: `$.Services[*].State`. Undefined for an invalid
 * path.
 *
 * @example
 * ```ts
 * selectJson({ items: [{ n: 1 }, { n: 2 }] }, '$.items[*].n') // [1, 2]
 * ```
 */
export function selectJson(document: unknown, path: string): readonly unknown[] | undefined {
  const parts = path.split('[*]')
  let values: readonly unknown[] = [document]
  for (const [index, part] of parts.entries()) {
    const steps = parseJsonPath(index === 0 ? part : `$${part}`)
    if (steps === undefined) return undefined
    values = values.flatMap((value) => {
      const selected = readJsonPath(value, steps)
      if (selected === undefined || index === parts.length - 1) return selected === undefined ? [] : [selected.value]
      return Array.isArray(selected.value) ? (selected.value as readonly unknown[]) : []
    })
  }
  return values
}

/**
 * A JSON value as expectations see it: a string without quotes, anything else as JSON.
 *
 * @example
 * ```ts
 * jsonText('up') // 'up'
 * jsonText({ up: true }) // '{"up":true}'
 * ```
 */
export const jsonText = (value: unknown): string => (typeof value === 'string' ? value : exactJson(value))

type Step =
  | { readonly of: 'element'; readonly name: string; readonly begins: boolean; readonly index: number | undefined }
  | { readonly of: 'attribute'; readonly name: string }
/** A node that a path selects: an element, or the value of an attribute. */
export type XmlNode = XmlElement | { readonly value: string }

const xmlStep = () => /^(?:@([\p{L}_][\p{L}\p{N}_.:-]*)|(\*|[\p{L}_][\p{L}\p{N}_.:-]*\*?)(?:\[(\d{1,9})\])?)$/u

/**
 * The steps of a path: `/VAST/Ad[0]/InLine/@id`, relative without the first slash. A name without an index selects
 * every element with that name, `*` any, `Job_*` all whose names begin so. Indexes count from 0, among the elements
 * that the name selects. Undefined for an invalid path.
 */
export function parseXmlPath(path: string): readonly Step[] | undefined {
  const written = path.replace(/^\//, '')
  if (written === '.') return []
  const steps: Step[] = []
  for (const part of written.split('/')) {
    const [whole, attribute, name = '', index] = xmlStep().exec(part) ?? []
    if (whole === undefined || steps.at(-1)?.of === 'attribute') return undefined
    if (attribute !== undefined) steps.push({ of: 'attribute', name: attribute })
    else {
      const begins = name.endsWith('*')
      const position = index === undefined ? undefined : Number(index)
      steps.push({ of: 'element', name: begins ? name.slice(0, -1) : name, begins, index: position })
    }
  }
  return steps
}

/** All nodes that the steps select, in document order. */
export function selectXml(from: XmlElement, steps: readonly Step[]): readonly XmlNode[] {
  let nodes: readonly XmlNode[] = [from]
  for (const next of steps) {
    nodes = nodes.flatMap((node): readonly XmlNode[] => {
      if ('value' in node) return []
      if (next.of === 'attribute') {
        const value = node.attributes.get(next.name)
        return value === undefined ? [] : [{ value }]
      }
      const matching = node.children.filter(({ name }) => isCalled(name, next.name, next.begins))
      return next.index === undefined ? matching : matching.slice(next.index, next.index + 1)
    })
  }
  return nodes
}

/** Compares a name with or without its prefix: `vmap:AdBreak` is also `AdBreak`. */
const isCalled = (name: string, expected: string, begins: boolean): boolean =>
  [name, name.slice(name.indexOf(':') + 1)].some((form) => (begins ? form.startsWith(expected) : form === expected))

export const xmlText = (node: XmlNode): string => ('value' in node ? node.value : node.text)

/** A node above the root, so that `/VAST` is a step like any other. */
export const above = (root: XmlElement): XmlElement => ({ name: '', attributes: new Map(), children: [root], text: '' })

/** One value that a path selects. */
export type Item = {
  /** The text that expectations see. */
  readonly text: string
  /** The items that a path relative to this one selects; `.` is the item itself. Undefined for an invalid path. */
  readonly within: (relative: string) => readonly Item[] | undefined
}
export type PathSelection = readonly Item[] | { readonly problem: string }

/** The content of an answer, by path: `$…` into JSON, `/…` into XML. */
export type DocumentAnswer = {
  readonly json: () => { readonly value: unknown } | { readonly problem: string }
  readonly xml: XmlRead | undefined
}

/** Maximum number of items examined: a peer must not decide how much work this is. */
export const maxItems = 2_000

const isXmlPath = (path: string): boolean => path.startsWith('/')
const countOf = (path: string): string | undefined => /^count\((.*)\)$/s.exec(path)?.[1]

/**
 * Why a path is invalid, or undefined.
 *
 * @example
 * ```ts
 * pathProblem('$.status') // undefined
 * ```
 */
export function pathProblem(path: string, expected?: 'json' | 'xml'): string | undefined {
  const mistake = pathMistake(path, expected)
  return mistake === undefined ? undefined : `${quote(path, 80)} ${mistake}`
}

/** The same in words that follow the path. */
export function pathMistake(path: string, expected?: 'json' | 'xml'): string | undefined {
  const inner = countOf(path) ?? path
  if (expected !== 'json' && isXmlPath(inner) && parseXmlPath(inner)?.length) return undefined
  if (expected !== 'xml' && inner.startsWith('$') && selectJson(undefined, inner)) return undefined
  if (expected === 'xml') return 'is not a path such as /VAST/Ad[0]/@id'
  const way = isXmlPath(inner) ? '' : jsonWayOut(inner)
  if (expected === 'json') return `is not a JSON path such as $.a.b[0].c${way}`
  return `is neither a JSON path such as $.a[*].b nor an XML path such as /a/b/@c${way}`
}

/** The mistake of a setting with a path of one JSON value. */
export const jsonValueMistake = (path: string): string | undefined =>
  parseJsonPath(path) ? undefined : (pathMistake(path, 'json') ?? 'selects several values or a count: name one value')

/** Equal for two paths that select the same. */
const samePath = (path: string): string => {
  const parts = path.split('[*]').map((part, index) => parseJsonPath(index === 0 ? part : `$${part}`))
  return parts.includes(undefined) ? path : JSON.stringify(parts)
}

/** A setting with expected values by path: in `form`, or in both. Used with `doc`. */
export const expectedValues = <const Form extends 'json' | 'xml' | undefined>(form?: Form) =>
  ({
    type: 'map',
    negatable: true,
    sameKey: samePath,
    mistake: (expectation: string, path: string) => pathMistake(path, form) ?? expectationMistake(expectation),
  }) as const

/** How to write what is meant by a text that is not a JSON path: continues the sentence about it. */
function jsonWayOut(path: string): string {
  if (!path.startsWith('$')) return selectJson(undefined, `$.${path}`) ? `: write $.${sanitize(path, 80)}` : ''
  if (path.includes('..')) return ': svc does not search for a name (..): write the whole path'
  if (/\[[?(]/.test(path)) return ': svc does not filter lists: use measure with where'
  if (/\[-?\d*:/.test(path)) return ': svc takes no part of a list: write one index, or [*] for each element'
  if (/\[-\d/.test(path)) return ': svc counts from the first element of a list, which is [0]'
  const [, number] = /\.(\d+)(?:[.[]|$)/.exec(path) ?? []
  return number === undefined
    ? ": write a name with other characters like ['a.b']"
    : `: write [${number}] for an element of a list, or ['${number}'] for a name`
}

/** Why a path below an item is invalid, or undefined. It may be a path of JSON or of XML. */
export const relativeProblem = (path: string): string | undefined =>
  parseXmlPath(path) === undefined && selectJson(undefined, relativeJson(path)) === undefined
    ? `${quote(path, 80)} is not a path within an item, such as State or @id`
    : undefined

const relativeJson = (path: string): string => (path === '.' ? '$' : path.startsWith('[') ? `$${path}` : `$.${path}`)

/** A value that nests too deeply to be serialized is still a value. */
function shownJson(value: unknown): string {
  try {
    return jsonText(value)
  } catch {
    return '(nested too deeply)'
  }
}

const jsonItem = (value: unknown): Item => ({
  text: shownJson(value),
  within: (relative) => selectJson(value, relativeJson(relative))?.map(jsonItem),
})

const xmlItem = (node: XmlNode): Item => ({
  text: xmlText(node),
  within: (relative) => {
    const steps = parseXmlPath(relative)
    if (steps === undefined) return undefined
    if ('value' in node) return steps.length === 0 ? [xmlItem(node)] : []
    return selectXml(node, steps).map(xmlItem)
  },
})

/** Selects the items of a path; `count(path)` is one value. Never throws. */
export function select(answer: DocumentAnswer, path: string): PathSelection {
  const counted = countOf(path)
  if (counted !== undefined) {
    const selection = select(answer, counted)
    return 'problem' in selection ? selection : [jsonItem(selection.length)]
  }
  const problem = pathProblem(path)
  if (problem !== undefined) return { problem }
  if (isXmlPath(path)) {
    if (answer.xml === undefined) return { problem: 'the answer is not XML' }
    if ('problem' in answer.xml) return { problem: `the answer ${answer.xml.problem}` }
    return selectXml(above(answer.xml.root), parseXmlPath(path) ?? []).map(xmlItem)
  }
  const read = answer.json()
  return 'problem' in read ? read : (selectJson(read.value, path) ?? []).map(jsonItem)
}

/**
 * The list of a JSON path such as `$.a.b[*].c` if the answer has no such list, here `$.a.b`: then the path selects
 * nothing because the answer has another form, and not because the list is empty. `null` is an empty list, as some
 * programs write it. Undefined for XML, where an empty list and a missing one look the same.
 */
export function missingList(answer: DocumentAnswer, path: string): string | undefined {
  const [list = '', ...rest] = path.split('[*]')
  const steps = rest.length > 0 ? parseJsonPath(list) : undefined
  const read = steps && answer.json()
  if (!steps || !read || 'problem' in read) return undefined
  const value = readJsonPath(read.value, steps)?.value
  return value === null || Array.isArray(value) ? undefined : list
}

/** Whether a path selects nothing because its list is there and has no element. */
function isEmptyList(answer: DocumentAnswer, path: string): boolean {
  const end = path.lastIndexOf('[*]')
  if (end < 0 || missingList(answer, path) !== undefined) return false
  const elements = select(answer, path.slice(0, end + '[*]'.length))
  return !('problem' in elements) && elements.length === 0
}

/**
 * The expected values that are missing or differ: `[path, what is wrong]`. `not: present` demands that the path selects
 * nothing; any other negation demands a value, as a mistaken path would meet it forever. Throws UnseenError.
 */
export function unmetValues(
  answer: DocumentAnswer,
  expected: Readonly<Record<string, Expectation>>,
  redact: Redact,
): readonly (readonly [string, string])[] {
  return Object.entries(expected).flatMap(([path, expectation]) => {
    const selection = select(answer, path)
    if ('problem' in selection) return [[path, selection.problem] as const]
    if (isAbsence(expectation))
      return selection.length === 0 ? [] : [[path, `the answer has ${sanitize(path, 80)}, expected none`] as const]
    if (selection.length === 0 && isNegation(expectation) && isEmptyList(answer, path)) return []
    if (selection.length === 0)
      return [[path, `the answer has no ${sanitize(path, 80)}, expected ${showExpectation(expectation)}`] as const]
    const mismatches = mismatchesOf(
      selection.slice(0, maxItems).map(({ text }) => text),
      expectation,
      redact,
    )
    const [first] = mismatches
    if (first === undefined && isNegation(expectation) && selection.length > maxItems)
      throw new UnseenError(`has more than ${maxItems} ${sanitize(path, 80)}, so that \`not\` cannot be evaluated`)
    if (first === undefined) return []
    const many = selection.length > 1 ? ` (${mismatches.length} of ${selection.length})` : ''
    return [[path, `${sanitize(path, 80)} ${first}${many}`] as const]
  })
}

function mismatchesOf(texts: readonly string[], expectation: Expectation, redact: Redact): readonly string[] {
  try {
    return unmetEach(texts, expectation, redact).filter((mismatch) => mismatch !== undefined)
  } catch (error) {
    if (error instanceof UnjudgedError && !(error instanceof UnseenError)) return [error.message]
    throw error
  }
}

/**
 * Parses a date into milliseconds since 1970: ISO 8601, `/Date(ms)/`, seconds or ms. Without a time zone: UTC.
 *
 * @example
 * ```ts
 * readDate('1970-01-01T00:00:01Z') // 1000
 * readDate('soon') // undefined
 * ```
 */
export function readDate(text: string): number | undefined {
  const ms = /^\/Date\((-?\d{1,15})(?:[+-]\d{4})?\)\/$/.exec(text)?.[1]
  if (ms !== undefined) return Number(ms)
  if (/^\d{9,10}(?:\.\d+)?$/.test(text)) return Number(text) * 1_000
  if (/^\d{12,13}$/.test(text)) return Number(text)
  const [, day, time = '00:00:00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?\s?(Z|[+-]\d\d:?\d\d)?$/.exec(text) ?? []
  if (day === undefined) return undefined
  const parsed = Date.parse(`${day}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')}`)
  return Number.isNaN(parsed) ? undefined : parsed
}
