/**
 * Part of `npm run check`: every `@example` in the comments of src compiles and is true. An example is a block of TypeScript
 * in a fence. It sees what its file exports, and imports the rest. A line such as `count(2, 'key') // '2 keys'` is evaluated,
 * and its value compared with the comment; a block in a fence `ts norun` is only compiled.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inspect, isDeepStrictEqual } from 'node:util'
import { parseSync } from 'rolldown/utils'

type Compare = (expression: string, value: unknown, expected: unknown) => void

/** An example: its file, the line of its `@example`, its code, and whether it is evaluated. */
export type DocExample = { readonly file: string; readonly line: number; readonly code: string; readonly runs: boolean }

/** The examples in the comments of one file, in their order. Throws for an `@example` without a fence. */
export function examplesIn(file: string, source: string): readonly DocExample[] {
  return [...source.matchAll(/^ *\* @example\n/gm)].map((match) => {
    const line = source.slice(0, match.index).split('\n').length
    const fence = /^ *\* ```ts( norun)?\n((?: *\*(?: .*)?\n)*?) *\* ```\n/.exec(
      source.slice(match.index + match[0].length),
    )
    if (fence === null) throw new Error(`${file}:${line}: put the example into a fence: \`\`\`ts`)
    const code = (fence[2] ?? '').replace(/^ *\* ?/gm, '')
    return { file, line, code, runs: fence[1] === undefined }
  })
}

/** The exports of a file itself: `name`, or `type name`. */
function exportsOf(file: string, source: string): readonly string[] {
  return parseSync(file, source).program.body.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration' || statement.declaration === null) return []
    const { declaration } = statement
    if (declaration.type === 'VariableDeclaration')
      return declaration.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
    if (declaration.type === 'TSTypeAliasDeclaration') return [`type ${declaration.id.name}`]
    return 'id' in declaration && declaration.id?.type === 'Identifier' ? [declaration.id.name] : []
  })
}

/** The module that an example becomes. */
function moduleOf({ file, code }: DocExample, source: string): string {
  const path = resolve(file)
  const own = exportsOf(file, source).filter((name) => new RegExp(`\\b${name.replace('type ', '')}\\b`).test(code))
  const imports: string[] = []
  if (own.length > 0) imports.push(`import { ${own.join(', ')} } from ${JSON.stringify(path)}`)
  const body = code.split('\n').flatMap((text) => {
    const imported = /^(import .* from )'(\.[^']+)'$/.exec(text)
    if (imported) imports.push(`${imported[1]}${JSON.stringify(join(dirname(path), imported[2] ?? ''))}`)
    if (imported) return []
    const [, expression, value] = /^(\S.*?) \/\/ (.+)$/.exec(text) ?? []
    return [expression === undefined ? text : `compare(${JSON.stringify(expression)}, ${expression}, ${value})`]
  })
  return `${imports.join('\n')}\nexport const run = async (compare: (expression: string, value: unknown, expected: unknown) => void): Promise<void> => {\n${body.join('\n')}\n}\n`
}

/**
 * Compiles the examples of `files` (paths from the root of the repository), then evaluates them. Returns how
 * many there are, and a line for each problem.
 */
export async function exampleProblems(
  files: readonly string[],
): Promise<{ readonly count: number; readonly problems: readonly string[] }> {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const folder = mkdtempSync(join(root, '.doc-examples-'))
  try {
    const examples = files.flatMap((file) => examplesIn(file, readFileSync(file, 'utf8')))
    const modules = examples.map((example, at) => {
      const module = join(folder, `${at}.ts`)
      writeFileSync(module, moduleOf(example, readFileSync(example.file, 'utf8')))
      return module
    })
    const options = { noUnusedLocals: false, noUnusedParameters: false, noEmit: true }
    const config = { extends: join(root, 'tsconfig.json'), include: ['*.ts'], compilerOptions: options }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const problems = [...compile(folder, examples)]
    const compiled = problems.length === 0
    for (const [at, module] of modules.entries()) {
      const example = examples[at]
      if (!compiled || !example?.runs) continue
      const { run } = (await import(pathToFileURL(module).href)) as {
        readonly run: (compare: Compare) => Promise<void>
      }
      const { file, line } = example
      await run((expression, value, expected) => {
        if (!isDeepStrictEqual(value, expected)) problems.push(`${file}:${line}: ${expression} is ${inspect(value)}`)
      })
    }
    return { count: examples.length, problems }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The errors of the compiler, under the places of the examples. */
function compile(folder: string, examples: readonly DocExample[]): readonly string[] {
  try {
    execFileSync(
      process.execPath,
      [fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url)), '-p', folder],
      {
        encoding: 'utf8',
      },
    )
    return []
  } catch (error) {
    const { stdout } = error as { readonly stdout: string }
    return stdout
      .trim()
      .split('\n')
      .map((line) =>
        line.replace(
          /^.*?(\d+)\.ts\(\d+,\d+\)/,
          (_, at: string) => `${examples[Number(at)]?.file}:${examples[Number(at)]?.line}`,
        ),
      )
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `src/${name.replaceAll('\\', '/')}`)
  const { problems } = await exampleProblems(files)
  if (problems.length > 0) {
    process.stderr.write(`${problems.join('\n')}\n`)
    process.exitCode = 1
  }
}
