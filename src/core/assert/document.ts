import { quote, type Redact, sanitize } from '../net/text.ts'
import { UnjudgedError, unmetEach } from './expectation.ts'
import type { XmlElement, XmlRead } from './xml.ts'

const jsonStep = /\.([\p{L}_$@-][\p{L}\p{N}_$@-]*)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]/uy

/**
 * The steps of a JSON path: `$.a.b[0].c`, `$['a b']`. No wildcards, filters or slices: one path
 * names one value. Undefined when it cannot be read.
 */
export function parseJsonPath(path: string): readonly (string | number)[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: (string | number)[] = []
  let at = 1
  while (at < path.length) {
    jsonStep.lastIndex = at
    const step = jsonStep.exec(path)
    if (!step) return undefined
    const [whole, name, index, single, double] = step
    steps.push(index === undefined ? (name ?? single ?? double ?? '') : Number(index))
    at += whole.length
  }
  return steps
}

/** The value at a path, in an object of its own: `undefined` says that nothing is there. */
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
 * Everything at a path that may hold `[*]`, each element of a list: `$.Services[*].State`. Undefined
 * when the path cannot be read.
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

/** A JSON value as expectations see it: a string bare, anything else as JSON. */
export const jsonText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

type Step =
  | { readonly of: 'element'; readonly name: string; readonly begins: boolean; readonly index: number | undefined }
  | { readonly of: 'attribute'; readonly name: string }
/** What a path leads to: an element, or the value of an attribute. */
export type XmlNode = XmlElement | { readonly value: string }

const xmlStep = /^(?:@([\p{L}_][\p{L}\p{N}_.:-]*)|(\*|[\p{L}_][\p{L}\p{N}_.:-]*\*?)(?:\[(\d{1,9})\])?)$/u

/**
 * The steps of a path: `/VAST/Ad[0]/InLine/@id`, relative without the first slash. A name without an
 * index stands for every element so called, `*` for any, `Job_*` for all that begin so; indexes count
 * from 0, among the elements that the name stands for. Undefined when it cannot be read.
 */
export function parseXmlPath(path: string): readonly Step[] | undefined {
  const written = path.replace(/^\//, '')
  if (written === '.') return []
  const steps: Step[] = []
  for (const part of written.split('/')) {
    const [whole, attribute, name = '', index] = xmlStep.exec(part) ?? []
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

/** Everything that the steps lead to, in the document's order. */
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

/** With its prefix or without: `vmap:AdBreak` is also `AdBreak`. */
const isCalled = (name: string, expected: string, begins: boolean): boolean =>
  [name, name.slice(name.indexOf(':') + 1)].some((form) => (begins ? form.startsWith(expected) : form === expected))

export const xmlText = (node: XmlNode): string => ('value' in node ? node.value : node.text)

/** The document above its root, so that `/VAST` is a step like any other. */
export const above = (root: XmlElement): XmlElement => ({ name: '', attributes: new Map(), children: [root], text: '' })

/** One value that a path leads to. */
export type Item = {
  /** As expectations see it. */
  readonly text: string
  /** What a path relative to it leads to; `.` is itself. Undefined when the path cannot be read. */
  readonly within: (relative: string) => readonly Item[] | undefined
}
export type PathSelection = readonly Item[] | { readonly problem: string }

/** What an answer holds, by path: `$…` into JSON, `/…` into XML. */
export type DocumentAnswer = {
  readonly json: () => { readonly value: unknown } | { readonly problem: string }
  readonly xml: XmlRead | undefined
}

/** More is not looked at: a peer must not choose how much we do. */
export const maxItems = 2_000

const isXmlPath = (path: string): boolean => path.startsWith('/')
const countOf = (path: string): string | undefined => /^count\((.*)\)$/s.exec(path)?.[1]

/** Why a path cannot be read, or undefined. */
export function pathProblem(path: string, expected?: 'json' | 'xml'): string | undefined {
  const inner = countOf(path) ?? path
  if (expected !== 'json' && isXmlPath(inner) && parseXmlPath(inner)?.length) return undefined
  if (expected !== 'xml' && inner.startsWith('$') && selectJson(undefined, inner)) return undefined
  if (expected === 'xml') return `${quote(path, 80)} is not a path such as /VAST/Ad[0]/@id`
  if (expected === 'json') return `${quote(path, 80)} is not a JSON path such as $.a.b[0].c`
  return `${quote(path, 80)} is neither a JSON path such as $.a[*].b nor an XML path such as /a/b/@c`
}

/** Why a path below an item cannot be read, or undefined: it may be one of JSON or of XML. */
export const relativeProblem = (path: string): string | undefined =>
  parseXmlPath(path) === undefined && selectJson(undefined, relativeJson(path)) === undefined
    ? `${quote(path, 80)} is not a path within an item, such as State or @id`
    : undefined

const relativeJson = (path: string): string => (path === '.' ? '$' : path.startsWith('[') ? `$${path}` : `$.${path}`)

/** What nests too deeply to be written out is a value all the same. */
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

/** What a path leads to; `count(path)` is one value. Never throws. */
export function select(answer: DocumentAnswer, path: string): PathSelection {
  const counted = countOf(path)
  if (counted !== undefined) {
    const selection = select(answer, counted)
    return 'problem' in selection ? selection : [jsonItem(selection.length)]
  }
  const wrong = pathProblem(path)
  if (wrong !== undefined) return { problem: wrong }
  if (isXmlPath(path)) {
    if (answer.xml === undefined) return { problem: 'the answer is not XML' }
    if ('problem' in answer.xml) return { problem: `the answer ${answer.xml.problem}` }
    return selectXml(above(answer.xml.root), parseXmlPath(path) ?? []).map(xmlItem)
  }
  const read = answer.json()
  return 'problem' in read ? read : (selectJson(read.value, path) ?? []).map(jsonItem)
}

/** Which of the expected values are not there or not as expected: `[path, what is wrong]`. */
export function unmetValues(
  answer: DocumentAnswer,
  expected: Readonly<Record<string, string>>,
  redact: Redact,
): readonly (readonly [string, string])[] {
  return Object.entries(expected).flatMap(([path, expectation]) => {
    const selection = select(answer, path)
    if ('problem' in selection) return [[path, selection.problem] as const]
    if (selection.length === 0)
      return [[path, `the answer has no ${sanitize(path, 80)}, expected ${sanitize(expectation, 80)}`] as const]
    const wrong = eachWrong(
      selection.slice(0, maxItems).map(({ text }) => text),
      expectation,
      redact,
    )
    const [first] = wrong
    if (first === undefined) return []
    const many = selection.length > 1 ? ` (${wrong.length} of ${selection.length})` : ''
    return [[path, `${sanitize(path, 80)} ${first}${many}`] as const]
  })
}

function eachWrong(texts: readonly string[], expectation: string, redact: Redact): readonly string[] {
  try {
    return unmetEach(texts, expectation, redact).filter((wrong) => wrong !== undefined)
  } catch (error) {
    if (error instanceof UnjudgedError) return [error.message]
    throw error
  }
}

/** The date that a text stands for, as ms since 1970: ISO 8601, `/Date(ms)/`, seconds or ms. Without a zone: UTC. */
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
