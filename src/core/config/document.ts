import type { Document, Node, Scalar, YAMLError } from 'yaml'
import type { Problem } from '../settings/index.ts'

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
  const wrong = [...document.errors, ...document.warnings]
  if (wrong.length > 0) {
    // One mistake may cause many parser errors in the same place.
    const reported = new Map<string, PlacedProblem>()
    for (const error of wrong) {
      const problem = { path: [], place: place(error.pos[0]), message: sentence(error) }
      reported.set(JSON.stringify(problem), problem)
    }
    return failed([...reported.values()])
  }
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.2') {
    return failed([{ path: [], place: place(0), message: 'must be YAML 1.2: remove the %YAML line' }])
  }
  const placeOf = (path: Problem['path']): DocumentPlace => place(offsetOf(document, path, yaml))
  try {
    return { value: document.toJS({ maxAliasCount: maxAliases }) as unknown, problems: [], placeOf }
  } catch (error) {
    if (!(error instanceof ReferenceError || error instanceof RangeError)) throw error
    const loose = looseAlias(document, yaml)
    const message =
      loose === undefined
        ? 'expands to too much data: replace its anchors and aliases (`&name`, `*name`) with the text itself'
        : 'uses an alias (`*name`) without an anchor before it: quote texts that begin with * or &'
    return failed([{ path: [], place: place(loose ?? 0), message }])
  }
}

/** What is wrong with the syntax, and the remedy. Never quotes the text. */
function sentence(error: YAMLError): string {
  switch (error.code) {
    case 'TAB_AS_INDENT':
      return 'is indented with a tab: use spaces'
    case 'DUPLICATE_KEY':
      return 'contains the same key twice: keep one of them'
    case 'MULTIPLE_DOCS':
      return 'contains several documents: keep one, and remove the "---" between them'
    case 'TAG_RESOLVE_FAILED':
      return 'uses a tag (`!name`): remove it, svc.yaml needs none'
    case 'NON_STRING_KEY':
      return 'has a key that is not a simple text: write `name: value`'
    case 'BAD_SCALAR_START':
      return 'begins a text with a reserved character: put the text in quotes'
    case 'MISSING_CHAR':
      return 'is incomplete here: a closing quote or bracket, a comma, or the colon of `name: value` is missing'
    case 'RESOURCE_EXHAUSTION':
      return 'is nested too deeply'
    case 'BAD_INDENT':
      return 'is indented incorrectly: entries of the same level must begin in the same column'
    default:
      return `is not valid YAML (${error.code}): check the quotes, brackets, colons and indentation here`
  }
}

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
      const pair = node.items.find(({ key }) => String(key.value) === String(step))
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
