import { type ESTree, parseSync } from 'rolldown/utils'

/**
 * The code of a CommonJS chunk, with parentheses around the functions that `runs` selects by their place: V8 compiles
 * such a function with the script around it, and so into the cache of compiled code. Others it compiles when they are
 * first called, in every process anew, because Node writes the cache before anything is called. A function that never
 * runs would only make the cache larger, all of which is read at every start.
 *
 * A declaration at the top becomes a variable before everything else, where it is defined already. Characters beyond
 * ASCII become escapes: with a single one V8 holds the whole text in two bytes a character, and collects garbage sooner.
 */
export function compiledEagerly(code: string, runs: (start: number, end: number) => boolean): string {
  const { program, errors } = parseSync('chunk.cjs', code, { sourceType: 'script', preserveParens: false })
  const [error] = errors
  if (error) throw new Error(error.message)
  const selected = ({ start, end }: ESTree.Node): boolean => runs(start, end)
  const declarations = program.body.filter(isDeclaration).filter(selected)
  const parentheses = expressionsIn(program, undefined)
    .filter(selected)
    .flatMap(({ start, end }) => [
      { at: start, text: '(' },
      { at: end, text: ')' },
    ])
  parentheses.sort((a, b) => a.at - b.at)
  /** A part of the code with its parentheses: those of whole functions in it. */
  const part = (start: number, end: number): string => {
    let text = ''
    let from = start
    for (const { at, text: parenthesis } of parentheses.filter((one) => one.at >= start && one.at <= end)) {
      // What begins where this part ends, or the other way round, belongs to its neighbour.
      if ((at === end && parenthesis === '(') || (at === start && parenthesis === ')')) continue
      text += code.slice(from, at) + parenthesis
      from = at
    }
    return text + code.slice(from, end)
  }
  const variables = declarations.map((node) => {
    const head = `${node.async ? 'async ' : ''}function${node.generator ? '*' : ''}`
    const name = node.id?.name ?? ''
    // The variable gives the function its name.
    return `var ${name}=(${head}${part(node.id?.end ?? node.start, node.end)});`
  })
  let rest = ''
  let from = program.body.findLast((node) => 'directive' in node)?.end ?? 0
  const directives = code.slice(0, from)
  for (const { start, end } of declarations) {
    rest += `${part(from, start)};`
    from = end
  }
  return inAscii(`${directives}${variables.join('')}${rest}${part(from, code.length)}`)
}

/** Strings, templates and patterns take escapes; the bundle holds no comments and no names beyond ASCII. */
function inAscii(code: string): string {
  // The escape would become two characters: a backslash and a letter.
  if (/\\[^\0-\x7f]/.test(code)) throw new Error('a chunk has a backslash before a character beyond ASCII')
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The function expressions and arrow functions below a node. Methods cannot stand in parentheses. */
function expressionsIn(value: unknown, parent: ESTree.Node | undefined): readonly ESTree.Node[] {
  if (Array.isArray(value)) return value.flatMap((item) => expressionsIn(item, parent))
  if (!isNode(value)) return []
  const inner = Object.values(value).flatMap((member) => expressionsIn(member, value))
  const free =
    value.type === 'ArrowFunctionExpression' || (value.type === 'FunctionExpression' && !(parent && isMethod(parent)))
  return free ? [value, ...inner] : inner
}

const isDeclaration = (node: ESTree.Node): node is ESTree.Function => node.type === 'FunctionDeclaration'

const isNode = (value: unknown): value is ESTree.Node => typeof value === 'object' && value !== null && 'type' in value

const isMethod = (node: ESTree.Node): boolean =>
  node.type === 'MethodDefinition' || (node.type === 'Property' && (node.method || node.kind !== 'init'))
