/**
 * Part of `npm run check`: names of values, types and members must not be participles (`told`, `seen`, `given`), no name begins
 * with a word of the private vocabulary that this project once had (`wrongText`, `World`, `longestMs`), no two exported
 * types have one name, which would make a reader look up which of them is meant, no doc comment begins with "What", and in src no
 * import or export gives a thing another name. Words that `docs/glossary.md` rules out occur in no name, and those in bold in no
 * text of src and of the documents.
 */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'rolldown/utils'

const folders = ['src', 'test', 'tools', 'bench'] as const

const participles = new Set(
  'asked begun found gathered given heard held hushed kept known met named said seen shown standing telling told tried wanted'.split(
    ' ',
  ),
)

/** Words that no name begins with, and what to write in their place. */
const privateWords: ReadonlyMap<string, string> = new Map([
  ['wrong', 'name the problem, the mistake, or what is invalid'],
  ['world', 'call it a context or a fixture'],
  ['room', 'call it a width, a capacity or a folder'],
  ['longest', 'write `max`, or name the figure'],
])

/** The setting of svc.yaml for the check `longest transaction`. */
const settingNames = new Set(['longestTransaction'])

/** Names that stay, with the reason: `file name`. */
const allowed = new Set([
  // Members of what svc.yaml and JSON documents say.
  'src/core/checks/kinds/listening.ts found',
  'src/commands/secrets.ts kept',
  'test/checks/kinds/listening.long.test.ts found',
  // A column of SQL Server, and a module of blackbox_exporter.
  'test/support/simulated/sqlserver.ts known',
  'test/corpus/simulated-databases.long.test.ts known',
  'test/corpus/peers.ts asked',
])

/** Types that are called alike on purpose: the values of a table, of flags as of settings. */
const allowedTypes = new Set(['Values'])

type Node = { readonly type: string; readonly start: number } & Readonly<Record<string, unknown>>

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { readonly type?: unknown }).type === 'string'

/** Where a name is declared: what each kind of node calls it by. */
const declares: Readonly<Record<string, readonly string[]>> = {
  VariableDeclarator: ['id'],
  FunctionDeclaration: ['id', 'params'],
  FunctionExpression: ['id', 'params'],
  ArrowFunctionExpression: ['params'],
  ClassDeclaration: ['id'],
  PropertyDefinition: ['key'],
  MethodDefinition: ['key'],
  TSPropertySignature: ['key'],
  TSMethodSignature: ['key'],
  TSTypeAliasDeclaration: ['id'],
  TSInterfaceDeclaration: ['id'],
  Property: ['key'],
}

function* namesIn(pattern: unknown): Generator<{ readonly name: string; readonly start: number }> {
  if (Array.isArray(pattern)) {
    for (const one of pattern) yield* namesIn(one)
    return
  }
  if (!isNode(pattern)) return
  if (pattern.type === 'Identifier' || pattern.type === 'PrivateIdentifier') {
    yield { name: String(pattern['name']), start: pattern.start }
  } else if (pattern.type === 'ObjectPattern') yield* namesIn(pattern['properties'])
  else if (pattern.type === 'ArrayPattern') yield* namesIn(pattern['elements'])
  else if (pattern.type === 'Property') yield* namesIn(pattern['value'])
  else if (pattern.type === 'AssignmentPattern') yield* namesIn(pattern['left'])
  else if (pattern.type === 'RestElement') yield* namesIn(pattern['argument'])
}

function* declaredIn(node: unknown): Generator<{ readonly name: string; readonly start: number }> {
  if (Array.isArray(node)) {
    for (const one of node) yield* declaredIn(one)
    return
  }
  if (!isNode(node)) return
  if (node['computed'] !== true) for (const part of declares[node.type] ?? []) yield* namesIn(node[part])
  for (const value of Object.values(node)) yield* declaredIn(value)
}

/** The private word that `name` begins or ends with: `worldOf`, `WrongType`, `AuthWorld`. */
function privateWordIn(name: string): string | undefined {
  const words = name.replace(/^[#_]+/, '').split(/(?=[A-Z])/)
  return [words[0] ?? '', words.at(-1) ?? ''].map((word) => word.toLowerCase()).find((word) => privateWords.has(word))
}

/** A word that the glossary rules out, the term in its place, and whether texts must not have it either. */
export type HeldWord = { readonly word: string; readonly term: string; readonly inText: boolean }

/** The words with a mark in the last column of the tables: `**word**` or `*word*`. */
export const heldWordsIn = (glossary: string): readonly HeldWord[] =>
  [...glossary.matchAll(/^\| (.+?) \| .+ \| (.+) \|$/gm)].flatMap(([, term = '', words = '']) =>
    [...words.matchAll(/(\*{1,2})([^*]+)\1/g)].map(([, mark, word = '']) => ({ word, term, inText: mark === '**' })),
  )

const heldWords = heldWordsIn(readFileSync(new URL('../docs/glossary.md', import.meta.url), 'utf8'))

/** Singular and plural. */
const formsOf = ({ word }: HeldWord): string =>
  `${word.toLowerCase().replace(/y$/, '(?:y|ie)').replace(/[ -]/g, '[ -]')}s?`
const patternOf = (words: readonly HeldWord[]): RegExp => new RegExp(`\\b(?:${words.map(formsOf).join('|')})\\b`, 'i')
const inNames = patternOf(heldWords)
const inTexts = patternOf(heldWords.filter(({ inText }) => inText))

/** The words of a name or a path, apart: `pagerVotes`, `PAGER_VOTES` and `pager-votes.ts` are "pager votes". */
const wordsOf = (name: string): string =>
  name
    .replace(/([a-z\d])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$2 ')
    .split(/[^A-Za-z\d]+/)
    .join(' ')

/** The problem of a text with a word that the glossary rules out, or undefined. */
function heldProblem(text: string, pattern: RegExp): string | undefined {
  const [match] = pattern.exec(text) ?? []
  const ruledOut = match && heldWords.find((one) => new RegExp(`^${formsOf(one)}$`, 'i').test(match))
  return ruledOut && `"${ruledOut.word}" is not a term of svc: write "${ruledOut.term}" (docs/glossary.md)`
}

/** Characters. A longer line is data of others, such as the names of top-level domains. */
const maxLine = 1_000

/** The lines of a text with a word that must not occur in texts. Code in documents may be that of other programs. */
export const textProblems = (path: string, text: string): readonly string[] =>
  text.split('\n').flatMap((line, at) => {
    if (line.length > maxLine) return []
    const problem = heldProblem(path.endsWith('.md') ? line.replace(/`[^`]*`/g, '') : line, inTexts)
    return problem === undefined ? [] : [`${path}:${at + 1} ${problem}`]
  })

/** Why `name` is refused, or undefined. */
function nameProblem(path: string, name: string): string | undefined {
  const lower = name.toLowerCase()
  if (participles.has(lower) && !allowed.has(`${path} ${name}`)) return `"${name}" is a participle: name the thing`
  const word = settingNames.has(name) ? undefined : privateWordIn(name)
  if (word !== undefined) return `"${name}" says "${word}": ${privateWords.get(word)}`
  return heldProblem(wordsOf(name), inNames)?.replace(/^/, `"${name}": `)
}

/**
 * Imports and exports of our own under another name. The reader of one file would know a thing by a name that a search for its
 * definition does not find. Names of Node and of packages are not ours to choose.
 */
function* aliasesIn(body: unknown): Generator<{ readonly problem: string; readonly start: number }> {
  for (const statement of body as readonly Node[]) {
    const source = (statement['source'] as { readonly value?: unknown } | null | undefined)?.value
    if (typeof source !== 'string' || !source.startsWith('.')) continue
    for (const specifier of (statement['specifiers'] as readonly Node[] | undefined) ?? []) {
      const [from, to] = aliasOf(specifier)
      if (from !== to)
        yield {
          problem: `"${from}" is renamed to "${to}": give it that name where it is defined`,
          start: specifier.start,
        }
    }
  }
}

function aliasOf(specifier: Node): readonly [from: unknown, to: unknown] {
  const nameOf = (part: string): unknown => (specifier[part] as { readonly name?: unknown } | undefined)?.name
  if (specifier.type === 'ImportSpecifier') return [nameOf('imported'), nameOf('local')]
  return specifier.type === 'ExportSpecifier' ? [nameOf('local'), nameOf('exported')] : [undefined, undefined]
}

/** The problems of one file: of its path, its names, its comments and, in src, its texts. */
export function problemsOf(path: string, source: string): readonly string[] {
  const { program } = parseSync(path, source)
  const lineOf = (at: number): number => source.slice(0, at).split('\n').length
  const problems: string[] = []
  const add = (at: number, problem: string | undefined): void => {
    if (problem !== undefined) problems.push(`${path}:${lineOf(at)} ${problem}`)
  }
  add(0, heldProblem(wordsOf(path), inNames))
  for (const { name, start } of declaredIn(program.body)) add(start, nameProblem(path, name))
  for (const { index } of source.matchAll(/\/\*\*[\s*]*What\b/g))
    add(index, 'a doc comment begins with "What": begin with a noun, or with a verb for a function')
  if (!path.startsWith('src/')) return problems
  for (const { problem, start } of aliasesIn(program.body)) add(start, problem)
  return [...problems, ...textProblems(path, source)]
}

/** The problems of types that several of the files export. */
function typeProblems(sources: ReadonlyMap<string, string>): readonly string[] {
  const types = new Map<string, string[]>()
  for (const [path, source] of sources)
    if (path.startsWith('src/'))
      for (const [, name = ''] of source.matchAll(/^export (?:declare )?(?:type|interface|class) (\w+)/gm))
        types.set(name, [...(types.get(name) ?? []), path])
  return [...types].flatMap(([name, files]) =>
    files.length > 1 && !allowedTypes.has(name) ? [`${files.join(' and ')} both export a type ${name}`] : [],
  )
}

if (import.meta.main) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')
  const files = folders.flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  )
  const sources = new Map(files.map((path) => [path, read(path)]))
  const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root })].filter((path) => path !== 'docs/glossary.md')
  const problems = [
    ...[...sources].flatMap(([path, source]) => problemsOf(path, source)),
    ...typeProblems(sources),
    ...pages.flatMap((path) => textProblems(path, read(path))),
  ]
  if (problems.length > 0) {
    process.stderr.write(`${problems.join('\n')}\n`)
    process.exitCode = 1
  }
}
