import type { Document, Node, Pair, Scalar, YAMLError, YAMLMap } from 'yaml'
import { isPlainKey, type Problem } from '../base/settings/index.ts'

/** Counted from 1, as in editors. */
export type DocumentPlace = { readonly line: number; readonly column: number }
type PlacedProblem = Problem & { readonly place: DocumentPlace }
export type ParsedDocument = {
  /** Plain maps, lists, strings, numbers and booleans; null for an empty file. */
  readonly value: unknown
  /** With problems, `value` is meaningless. */
  readonly problems: readonly PlacedProblem[]
  /** The place of a path: that of its key, or for a missing key that of the nearest existing node around it. */
  readonly placeOf: (path: Problem['path']) => DocumentPlace
}

/** Aliases may refer to others, so that a few lines could expand to gigabytes. */
const maxAliases = 100

/** Parses YAML 1.2. Never throws, whatever the text contains. */
export async function parseDocument(text: string): Promise<ParsedDocument> {
  const yaml = await import('yaml')
  const lines = new yaml.LineCounter()
  const place = (offset: number): DocumentPlace => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const failed = (problems: readonly PlacedProblem[]): ParsedDocument => ({
    value: undefined,
    problems,
    placeOf: () => ({ line: 1, column: 1 }),
  })
  let document: Document.Parsed
  try {
    document = yaml.parseDocument(text, {
      version: '1.2',
      schema: 'core',
      strict: true,
      uniqueKeys: true,
      stringKeys: true,
      // Not in YAML 1.2, but users know `<<: *name` from other programs.
      merge: true,
      // Pretty messages quote the source, which may contain a password.
      prettyErrors: false,
      logLevel: 'error',
      lineCounter: lines,
    })
  } catch (error) {
    // Thousands of nested brackets exhaust the parser's stack.
    if (error instanceof RangeError) return failed([{ path: [], place: place(0), message: 'is nested too deeply' }])
    throw error
  }
  const [first] = [...document.errors, ...document.warnings]
  if (first) {
    // Only the first error: the others are mostly consequences of it.
    const { offset, message } = mistakeOf(first, document, text, yaml, place)
    return failed([{ path: [], place: place(offset), message }])
  }
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.2') {
    return failed([{ path: [], place: place(0), message: 'must be YAML 1.2: remove the %YAML line' }])
  }
  const placeOf = (path: Problem['path']): DocumentPlace => place(offsetOf(document, path, yaml))
  try {
    return { value: document.toJS({ maxAliasCount: maxAliases }) as unknown, problems: [], placeOf }
  } catch (error) {
    const loose = looseAlias(document, yaml)
    const merge = loose === undefined ? invalidMerge(document, yaml) : undefined
    if (merge !== undefined) {
      const message = 'merges something other than settings: write `<<: *name`, with `&name` before those settings'
      return failed([{ path: [], place: place(merge), message }])
    }
    if (!(error instanceof ReferenceError || error instanceof RangeError)) throw error
    const message =
      loose === undefined
        ? 'expands to too much data: replace its anchors and aliases (`&name`, `*name`) with the text itself'
        : 'uses an alias (`*name`) without an anchor before it: quote texts that begin with * or &'
    return failed([{ path: [], place: place(loose ?? 0), message }])
  }
}

type Mistake = { readonly offset: number; readonly message: string }

/** The mistake behind a parser error. The parser reports a quote or a bracket where it misses the closing one. */
function mistakeOf(
  error: YAMLError,
  document: Document.Parsed,
  text: string,
  yaml: typeof import('yaml'),
  place: (offset: number) => DocumentPlace,
): Mistake {
  const [at] = error.pos
  const blank = indentationMistake(text, at)
  if (blank !== undefined) return blank
  if (error.code === 'DUPLICATE_KEY') return { offset: at, message: duplicate(document, at, yaml, place) }
  const quote = openQuote(error, document, text, yaml)
  if (quote !== undefined) return { offset: quote, message: 'opens a quote here that is not closed: close it' }
  const bracket = /^Flow (map|sequence) .*end with/.exec(error.message)?.[1]
  if (bracket === undefined) return { offset: at, message: sentence(error, text) }
  const sign = bracket === 'map' ? '}' : ']'
  const offset = lastNode(
    document,
    yaml,
    ({ range, flow }) => flow === bracket && range[0] < at && text[range[1] - 1] !== sign,
  )
  return { offset: offset ?? at, message: `opens a bracket here that is not closed: add \`${sign}\`` }
}

/** A line that is indented with something other than spaces: the line of an error, or the one after it. */
function indentationMistake(text: string, at: number): Mistake | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const end = text.indexOf('\n', at)
  for (const from of end === -1 ? [start] : [start, end + 1]) {
    const [, spaces = '', sign] = /^( *)([\t\u00a0\u2000-\u200a\u3000])/.exec(text.slice(from, from + 200)) ?? []
    if (sign === undefined) continue
    const name = sign === '\t' ? 'a tab' : 'a blank that is not a space'
    return { offset: from + spaces.length, message: `is indented with ${name}: use spaces` }
  }
  return undefined
}

/** Both places of a key that occurs twice. */
function duplicate(
  document: Document.Parsed,
  at: number,
  yaml: typeof import('yaml'),
  place: (offset: number) => DocumentPlace,
): string {
  let message = 'contains the same key twice: keep one of them'
  yaml.visit(document, {
    Map: (_, map) => {
      const keys = map.items.map(({ key }) => key).filter((key) => yaml.isScalar(key))
      const second = keys.find((key) => key.range?.[0] === at)
      const first = keys.find((key) => key !== second && key.value === second?.value)
      if (!second || !first?.range) return undefined
      const { line, column } = place(first.range[0])
      const merges = isMergeKey(second)
      const name = merges ? '<<' : String(second.value)
      const key = merges || isPlainKey(name) ? `\`${name}\`` : 'the same key'
      const again = merges ? 'merge both with `<<: [*one, *other]`' : 'keep one of them'
      message = `contains ${key} twice, here and at ${line}:${column}: ${again}`
      return yaml.visit.BREAK
    },
  })
  return message
}

/** The offset of the value of a `<<:` that names no settings. */
function invalidMerge(document: Document.Parsed, yaml: typeof import('yaml')): number | undefined {
  let offset: number | undefined
  const isSettings = (node: unknown): boolean =>
    yaml.isMap(yaml.isAlias(node) ? node.resolve(document) : node) || (yaml.isSeq(node) && node.items.every(isSettings))
  yaml.visit(document, {
    Pair: (_, pair) => {
      if (!isMergeKey(pair.key) || isSettings(pair.value)) return undefined
      offset = (pair.value as Node | null)?.range?.[0] ?? (pair.key as Node).range?.[0]
      return yaml.visit.BREAK
    },
  })
  return offset
}

/** Whether a key is `<<` without quotes. */
function isMergeKey(key: unknown): boolean {
  const { value, type } = (key ?? {}) as { readonly value?: unknown; readonly type?: unknown }
  return typeof value === 'symbol' || (value === '<<' && type === 'PLAIN')
}

/** A text that continues on a line which looks like a setting: its closing quote is missing. */
const swallowed = /\n[ \t]*(?:- +)*[{[]*[A-Za-z_][\w-]*:(?:\s|$)/

/** The offset of the quote behind an error, if one is not closed. */
function openQuote(
  error: YAMLError,
  document: Document.Parsed,
  text: string,
  yaml: typeof import('yaml'),
): number | undefined {
  const [at] = error.pos
  const missing = error.message.startsWith('Missing closing ')
  return lastNode(
    document,
    yaml,
    ({ range, quoted }) =>
      quoted && range[0] < at && (missing || swallowed.test(text.slice(range[0], Math.min(range[1], at)))),
  )
}

type FlowNode = {
  readonly range: readonly [number, number, number]
  readonly quoted: boolean
  /** The kind of a collection in brackets. */
  readonly flow: 'map' | 'sequence' | undefined
}

/** The offset of the last node that fits. */
function lastNode(
  document: Document.Parsed,
  yaml: typeof import('yaml'),
  fits: (node: FlowNode) => boolean,
): number | undefined {
  let offset: number | undefined
  try {
    yaml.visit(document, { Node: (_, node) => visit(node) })
  } catch (error) {
    // A document that the parser has read may still be nested too deeply to be visited.
    if (!(error instanceof RangeError)) throw error
  }
  return offset

  function visit(node: Node): void {
    if (!node.range) return
    const quoted = yaml.isScalar(node) && (node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE')
    const flow = !yaml.isCollection(node) || node.flow !== true ? undefined : yaml.isMap(node) ? 'map' : 'sequence'
    if (fits({ range: node.range, quoted, flow })) offset = Math.max(offset ?? 0, node.range[0])
  }
}

/** The mistake in the syntax, and the remedy. Never quotes the text. */
function sentence(error: YAMLError, text: string): string {
  const [at] = error.pos
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'is indented with a tab: use spaces'
    case 'BAD_DQ_ESCAPE':
      return 'has a backslash in double quotes, where it stands for a special character: use single quotes'
    case 'BAD_ALIAS':
      return 'has * or & without a name: put the text in quotes'
    case 'MULTIPLE_ANCHORS':
      return 'has two anchors (`&name`) for one value: keep one'
    case 'BLOCK_IN_FLOW':
      return 'has a list or settings on lines of their own within brackets: write them in brackets too'
    case 'KEY_OVER_1024_CHARS':
      return 'has a key of more than 1,024 characters: check the quotes and colons here'
    case 'MULTIPLE_DOCS':
      return 'contains several documents: keep one, and remove the "---" between them'
    case 'TAG_RESOLVE_FAILED':
      return 'uses a tag (`!name`): remove it, svc.yaml needs none'
    case 'NON_STRING_KEY':
      return 'has a key that is not a simple text: write `name: value`'
    case 'BAD_SCALAR_START':
      return 'begins a text with a reserved character: put the text in quotes'
    case 'MISSING_CHAR':
      return /indicator/.test(error.message)
        ? 'is indented incorrectly: entries of the same level must begin in the same column'
        : 'lacks a comma, or the colon and the space of `name: value`'
    case 'MULTILINE_IMPLICIT_KEY':
      return 'lacks the colon and the space of `name: value`'
    case 'BLOCK_AS_IMPLICIT_KEY':
      // `name: value`, and a line below it that is indented further.
      if (!/: /.test(lineFrom(text, at))) {
        return 'has a value here, and the next line is indented too far: begin it in the column of this setting'
      }
      return 'has two settings on one line: write one on each line, or put a text that contains a colon in quotes'
    case 'UNEXPECTED_TOKEN':
      if (text[at] === ',') return 'has a comma too many: remove it'
      return 'continues after the end of a value: put the whole value in quotes'
    case 'RESOURCE_EXHAUSTION':
      return 'is nested too deeply'
    case 'BAD_INDENT':
      return 'is indented incorrectly: entries of the same level must begin in the same column'
    default:
      return `is not valid YAML (${error.code}): check the quotes, brackets, colons and indentation here`
  }
}

const lineFrom = (text: string, at: number): string => text.slice(at).split('\n', 1)[0] ?? ''

/** The offset of the first alias without an anchor before it. */
function looseAlias(document: Document.Parsed, yaml: typeof import('yaml')): number | undefined {
  const anchors = new Set<string>()
  let position: number | undefined
  yaml.visit(document, {
    Node: (_, node) => {
      if (yaml.isAlias(node)) {
        if (anchors.has(node.source)) return undefined
        position = node.range?.[0] ?? 0
        return yaml.visit.BREAK
      }
      if (node.anchor !== undefined) anchors.add(node.anchor)
      return undefined
    },
  })
  return position
}

/** The offset of the last step of a path that exists in the document. */
function offsetOf(document: Document.Parsed, path: Problem['path'], yaml: typeof import('yaml')): number {
  let node: unknown = document.contents
  let offset = document.contents?.range[0] ?? 0
  for (const step of path) {
    if (yaml.isAlias(node)) node = node.resolve(document)
    if (yaml.isMap<Scalar, Node>(node)) {
      const pair = pairOf(node, String(step), document, yaml)
      if (!pair) break
      offset = pair.key.range?.[0] ?? offset
      node = pair.value
    } else if (yaml.isSeq<Node>(node) && typeof step === 'number') {
      const item = node.items[step]
      offset = item?.range?.[0] ?? offset
      node = item
    } else break
  }
  return offset
}

/** The pair of a key in a map, or in a map that it merges. */
function pairOf(
  map: YAMLMap<Scalar, Node>,
  name: string,
  document: Document.Parsed,
  yaml: typeof import('yaml'),
): Pair<Scalar, Node> | undefined {
  const own = map.items.find(({ key }) => !isMergeKey(key) && String(key.value) === name)
  if (own) return own
  for (const { key, value } of map.items) {
    if (!isMergeKey(key)) continue
    for (const source of yaml.isSeq<Node>(value) ? value.items : [value]) {
      const merged = yaml.isAlias(source) ? source.resolve(document) : source
      const pair = yaml.isMap<Scalar, Node>(merged) ? pairOf(merged, name, document, yaml) : undefined
      if (pair) return pair
    }
  }
  return undefined
}
