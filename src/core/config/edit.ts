import { isDeepStrictEqual } from 'node:util'
import type { Document, Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml'
import { isMap, type Problem } from '../base/settings/index.ts'
import { registered } from '../checks/kinds/index.ts'
import { isKindName, monitorName } from '../checks/plan/index.ts'
import type { ServerType } from '../protocol/index.ts'
import { parseDocument } from './document.ts'
import { kindIn } from './long-form.ts'
import { monitorGrammar } from './monitors.ts'

/** The place of something in a document. */
type Path = Problem['path']

/**
 * A document of YAML with one item more at the end of a list, which it gets if there is none. Only lines of the item are
 * new where the list has lines of its own; elsewhere the document is written anew, with its comments.
 *
 * @example
 * ```ts
 * await withItem('notify:\n  - name: a # first\n', ['notify'], { name: 'b' }) // 'notify:\n  - name: a # first\n  - name: b\n'
 * ```
 */
export async function withItem(text: string, path: Path, item: object): Promise<string> {
  const yaml = await import('yaml')
  const document = yaml.parseDocument(text)
  const at = (depth: number): unknown => (depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true))
  let depth = path.length
  while (depth > 0 && !yaml.isCollection(at(depth))) depth -= 1
  const around = at(depth)
  const inserted = path.slice(depth).reduceRight<object>((value, key) => ({ [key]: value }), [item])
  const spliced =
    yaml.isCollection(around) && !around.flow ? splicedAfter(text, around, yaml.stringify(inserted, format)) : undefined
  if (yaml.isSeq(around)) document.addIn(path, document.createNode(item))
  else {
    // An empty setting is no map.
    if (depth < path.length - 1 && document.hasIn(path.slice(0, depth + 1))) document.deleteIn(path.slice(0, depth + 1))
    document.setIn(path, document.createNode([item]))
  }
  return asMeant(yaml, document, spliced)
}

/**
 * A document of YAML without what is at a path, and without the lists and maps that would be empty then. Removes whole
 * lines where it can; elsewhere the document is written anew, with its comments.
 */
export async function withoutItem(text: string, path: Path): Promise<string> {
  const yaml = await import('yaml')
  const document = yaml.parseDocument(text)
  let at = path
  for (let above = at.slice(0, -1); above.length > 0; above = at.slice(0, -1)) {
    const around = document.getIn(above, true)
    if (!yaml.isCollection(around) || around.items.length > 1) break
    at = above
  }
  const spliced = withoutLines(text, at, document, yaml)
  document.deleteIn(at)
  return asMeant(yaml, document, spliced)
}

const format = { flowCollectionPadding: false, lineWidth: 0 } as const

/** The text with whole lines changed if it means the same as the document, which is written anew otherwise. */
function asMeant(yaml: typeof import('yaml'), document: Document.Parsed, spliced: string | undefined): string {
  const anew = document.toString(format)
  if (spliced === undefined) return anew
  const again = yaml.parseDocument(spliced)
  return again.errors.length === 0 && isDeepStrictEqual(again.toJS(), document.toJS()) ? spliced : anew
}

/** The lines after those of the last item or setting of a list or map. */
function splicedAfter(text: string, { items }: YAMLSeq | YAMLMap, inserted: string): string | undefined {
  const last = items.at(-1) as Node | Pair<Scalar, Node | null> | undefined
  const isPair = last !== undefined && 'key' in last
  const from = (isPair ? last.key : last)?.range?.[0]
  const to = (isPair ? (last.value ?? last.key) : last)?.range?.[1]
  if (from === undefined || to === undefined) return undefined
  const column = (isPair ? from : text.lastIndexOf('-', from - 1)) - lineStart(text, from)
  const end = lineEnd(text, to)
  const lines = inserted
    .trimEnd()
    .split('\n')
    .map((line) => `${' '.repeat(Math.max(0, column))}${line}\n`)
  const before = text.slice(0, end)
  return `${before}${before.endsWith('\n') ? '' : '\n'}${lines.join('')}${text.slice(end)}`
}

/** The text without the lines of a node: of an item of a list, or of a setting. */
function withoutLines(
  text: string,
  path: Path,
  document: Document.Parsed,
  yaml: typeof import('yaml'),
): string | undefined {
  const around = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true)
  const last = path.at(-1)
  const pair = yaml.isMap(around) ? pairNamed(around as YAMLMap<Scalar, Node>, last) : undefined
  const node = pair?.value ?? (yaml.isSeq<Node>(around) && typeof last === 'number' ? around.items[last] : undefined)
  const from = (pair?.key ?? node)?.range?.[0]
  const to = node?.range?.[1]
  if (from === undefined || to === undefined) return undefined
  return text.slice(0, lineStart(text, from)) + text.slice(lineEnd(text, to))
}

const pairNamed = (map: YAMLMap<Scalar, Node>, name: string | number | undefined): Pair<Scalar, Node> | undefined =>
  map.items.find(({ key }) => key.value === name) as Pair<Scalar, Node> | undefined

const lineStart = (text: string, at: number): number => text.lastIndexOf('\n', at - 1) + 1

/** The end of the line on which something ends that may have taken line ends with it. */
function lineEnd(text: string, end: number): number {
  const last = text.slice(0, end).trimEnd().length
  const next = text.indexOf('\n', last)
  return next < 0 ? text.length : next + 1
}

/** The server type to which the servers of a kind belong. */
export const typeOfKind = (kind: string): ServerType => {
  const ports = isKindName(kind) ? registered[kind].ports : undefined
  return (Object.keys(ports ?? {})[0] as ServerType | undefined) ?? 'App'
}

/** The place of the monitors of a type, in the form that a file has. */
export async function listOfType(text: string, type: ServerType): Promise<Path> {
  return listIn((await parseDocument(text)).value, type)
}

/** The line on which the item at a path begins, counted from 1. */
export async function lineAt(text: string, path: Path): Promise<number> {
  return (await parseDocument(text)).placeOf(path).line
}

function listIn(value: unknown, type: ServerType): Path {
  const types = isMap(value) ? value['types'] : undefined
  return isMap(types) && isMap(types[type]) ? ['types', type, 'monitors'] : ['types', type]
}

/** The place of the entry of a monitor in a file. Undefined if the file has none, as where a profile makes it. */
export async function pathOfMonitor(text: string, type: ServerType, name: string): Promise<Path | undefined> {
  const { value } = await parseDocument(text)
  const path = listIn(value, type)
  const list = path.reduce<unknown>((at, step) => (isMap(at) ? at[String(step)] : undefined), value)
  const entries: readonly unknown[] = Array.isArray(list) ? list : []
  const index = entries.findIndex((entry) => {
    const kind = isMap(entry) ? kindIn(entry, monitorGrammar) : undefined
    if (!isMap(entry) || typeof kind !== 'string') return false
    return monitorName(kind, typeof entry['name'] === 'string' ? entry['name'] : kind) === name
  })
  return index < 0 ? undefined : [...path, index]
}

/** The names of the receivers in a text of svc.yaml, in their order. */
export async function receiversIn(text: string): Promise<readonly string[]> {
  const list: unknown = (await import('yaml')).parseDocument(text).toJS()?.notify
  return Array.isArray(list) ? list.map((one) => (isMap(one) ? String(one['name']) : '')) : []
}
