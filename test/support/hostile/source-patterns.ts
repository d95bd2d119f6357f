import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** How a pattern goes through a text: up to its first match, from each match on, or as long as matches follow one another. */
export type Scan = 'once' | 'all' | 'sticky'

export type SourcePattern = {
  /** File and line, for messages. */
  readonly at: string
  readonly source: string
  readonly flags: string
  readonly scan: Scan
}

export type FoundPatterns = {
  readonly literals: readonly SourcePattern[]
  /** `new RegExp(…)`, `RegExp(…)` and what makes one of a string, as `file: code`. */
  readonly built: readonly string[]
}

/** Methods of strings that make a regular expression of a string. */
const compiling = new Set(['match', 'matchAll', 'search'])

/** The regular expressions of one TypeScript file, read off its syntax tree. Throws when the file does not parse. */
export function patternsOf(file: string, code: string): FoundPatterns {
  const { program, errors } = parseSync(file, code)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`)
  const results: { readonly start: number; readonly source: string; readonly flags: string }[] = []
  const built: string[] = []
  /** Where the borders of a split begin, and the names by which others are known. */
  const borders = new Set<number | string>()
  /** Where a variable gets its value, and its name. */
  const names = new Map<number, string>()
  const show = (node: { readonly start: number; readonly end: number }): void => {
    built.push(`${file}: ${code.slice(node.start, node.end)}`)
  }
  new Visitor({
    Literal: (node) => {
      if ('regex' in node) results.push({ start: node.start, source: node.regex.pattern, flags: node.regex.flags })
    },
    VariableDeclarator: (node) => {
      if (node.init && node.id.type === 'Identifier') names.set(node.init.start, node.id.name)
    },
    NewExpression: (node) => {
      if (node.callee.type === 'Identifier' && node.callee.name === 'RegExp') show(node)
    },
    CallExpression: (node) => {
      if (node.callee.type === 'Identifier' && node.callee.name === 'RegExp') show(node)
      if (node.callee.type !== 'MemberExpression' || node.callee.property.type !== 'Identifier') return
      const [first] = node.arguments
      const method = node.callee.property.name
      if (first?.type === 'TemplateLiteral' || (first?.type === 'Literal' && typeof first.value === 'string')) {
        if (compiling.has(method)) show(node)
      } else if (first && method === 'split') borders.add(first.type === 'Identifier' ? first.name : first.start)
    },
  }).visit(program)
  const literals = results.map(({ start, source, flags }): SourcePattern => {
    const splits = borders.has(start) || borders.has(names.get(start) ?? start)
    const scan = flags.includes('y') ? 'sticky' : splits || flags.includes('g') ? 'all' : 'once'
    return { at: `${file}:${code.slice(0, start).split('\n').length}`, source, flags, scan }
  })
  return { literals, built }
}

/** The regular expressions of all TypeScript files below a folder. */
export function patternsBelow(folder: string): FoundPatterns {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const results = files.map((file) =>
    patternsOf(relative(folder, file).replaceAll('\\', '/'), readFileSync(file, 'utf8')),
  )
  return { literals: results.flatMap((one) => one.literals), built: results.flatMap((one) => one.built) }
}
