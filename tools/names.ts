/**
 * Part of `npm run check`: names of values, types and members must not be participles (`told`, `seen`, `given`), no name begins
 * with a word of the private vocabulary that this project once had (`wrongText`, `World`, `longestMs`), no two exported
 * types have one name, which would make a reader look up which of them is meant, and in src no import
 * or export gives a thing another name, and no doc comment begins with "What": a noun tells what a thing is.
 */
import { readdirSync, readFileSync } from 'node:fs'
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
  'test/checks/kinds/listening.test.ts found',
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

/** Why `name` is refused, or undefined. */
function nameProblem(path: string, name: string): string | undefined {
  const lower = name.toLowerCase()
  if (participles.has(lower) && !allowed.has(`${path} ${name}`)) return `"${name}" is a participle: name the thing`
  const word = settingNames.has(name) ? undefined : privateWordIn(name)
  return word === undefined ? undefined : `"${name}" says "${word}": ${privateWords.get(word)}`
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

const problems: string[] = []
const types = new Map<string, string[]>()
const files = folders.flatMap((folder) =>
  readdirSync(fileURLToPath(new URL(`../${folder}/`, import.meta.url)), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
)
for (const path of files) {
  const source = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
  const { program } = parseSync(path, source)
  const lineOf = (at: number): number => source.slice(0, at).split('\n').length
  for (const { name, start } of declaredIn(program.body)) {
    const problem = nameProblem(path, name)
    if (problem !== undefined) problems.push(`${path}:${lineOf(start)} ${problem}`)
  }
  for (const { index } of source.matchAll(/\/\*\*[\s*]*What\b/g))
    problems.push(
      `${path}:${lineOf(index)} a doc comment begins with "What": begin with a noun, or with a verb for a function`,
    )
  if (!path.startsWith('src/')) continue
  for (const { problem, start } of aliasesIn(program.body)) problems.push(`${path}:${lineOf(start)} ${problem}`)
  for (const [, name = ''] of source.matchAll(/^export (?:declare )?(?:type|interface|class) (\w+)/gm)) {
    types.set(name, [...(types.get(name) ?? []), path])
  }
}
for (const [name, files] of types) {
  if (files.length > 1 && !allowedTypes.has(name)) problems.push(`${files.join(' and ')} both export a type ${name}`)
}
if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exitCode = 1
}
