/**
 * Writes the manual pages, from the tables that the program itself reads: one for svc, one for each command.
 *   node tools/man.ts [--into FOLDER]      FOLDER/man1/svc.1, svc-health.1, …; without --into in dist/man
 *
 * They are generated and not committed.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { CommandClass } from '../src/cli/command/base.ts'
import { argumentLabel } from '../src/cli/command/flags.ts'
import { commonFlags, flagLabel, helpTopics, isCommon } from '../src/cli/help/help.ts'
import { packageJson } from '../src/cli/io/process.ts'
import { exits } from '../src/core/base/errors.ts'
import { commands, topics } from '../src/registry.ts'

const { values } = parseArgs({ options: { into: { type: 'string' } } })
const folder = join(values.into ?? fileURLToPath(new URL('../dist/man', import.meta.url)), 'man1')
const { version } = packageJson()

type Flag = Parameters<typeof isCommon>[0]
type Loaded = {
  readonly id: string
  readonly Class: CommandClass & { readonly description?: string; readonly examples?: string[] }
}

/** Text for roff: no escape, no request and no sign that a terminal without Unicode lacks. */
const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(
      /[^\x20-\x7e\n]/gu,
      (char) => `\\[u${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^(?=[.'])/gm, '\\&')

const page = (
  name: string,
  summary: string,
  sections: readonly (readonly [title: string, body: readonly string[]])[],
): string =>
  [
    `.TH "${name.toUpperCase().replaceAll('-', '\\-')}" 1 "" "svc ${version}" "Manual of svc"`,
    '.SH NAME',
    `${escaped(name)} \\- ${escaped(summary)}`,
    ...sections.flatMap(([title, body]) => (body.length === 0 ? [] : [`.SH "${title}"`, ...body])),
    '',
  ].join('\n')

/** One entry of a list: a bold term, and its meaning below. */
const entry = (term: string, meaning: string): readonly string[] => ['.TP', `.B ${escaped(term)}`, escaped(meaning)]

const paragraphs = (text: string): readonly string[] =>
  text.split(/\n{2,}/).flatMap((part) => ['.PP', escaped(part.replaceAll('\n', ' ').trim())])

/** Lines that stay as they are. */
const verbatim = (text: string): readonly string[] => ['.nf', escaped(text.trimEnd()), '.fi']

const flagEntries = (flags: readonly (readonly [string, Flag])[]): readonly string[] =>
  flags.flatMap(([name, flag]) => entry(flagLabel(name, flag).trim(), flag.description ?? ''))

const pageName = (id: string): string => `svc-${id.replaceAll(':', '-')}`

function commandPage({ id, Class }: Loaded): string {
  const words = `svc ${id.replaceAll(':', ' ')}`
  const flags = Object.entries({ ...Class.flags, ...Class.baseFlags } as Record<string, Flag>).filter(
    ([, { hidden }]) => !hidden,
  )
  const args = Object.values(Class.args).filter(({ hidden }) => !hidden)
  const usage = [words, ...args.map(argumentLabel), '[flags]'].join(' ')
  const common = flags.filter(([, flag]) => isCommon(flag)).map(([name]) => `--${name}`)
  const examples = (Class.examples ?? []).map((example) => example.replaceAll('<%= config.bin %>', 'svc'))
  return page(pageName(id), Class.summary, [
    ['SYNOPSIS', ['.B', escaped(usage)]],
    ['DESCRIPTION', paragraphs(Class.description ?? `${Class.summary}.`)],
    ['ARGUMENTS', args.flatMap(({ name, description = '' }) => entry(name.toUpperCase(), description))],
    ['FLAGS', flagEntries(flags.filter(([, flag]) => !isCommon(flag)))],
    ['COMMON FLAGS', ['.PP', escaped(`${common.join(', ')}: described in svc(1).`)]],
    ['EXAMPLES', examples.flatMap((example) => ['.PP', ...verbatim(example)])],
    ['EXIT STATUS', ['.PP', escaped('See svc(1).')]],
    ['SEE ALSO', ['.BR svc (1)']],
  ])
}

function overview(loaded: readonly Loaded[], description: string, texts: Readonly<Record<string, string>>): string {
  const listed = loaded.flatMap(({ id, Class }) => entry(`svc ${id.replaceAll(':', ' ')}`, Class.summary))
  const subjects = Object.keys(helpTopics).filter((name) => !['flags', 'exit-codes'].includes(name))
  return page('svc', description, [
    ['SYNOPSIS', ['.B', escaped('svc COMMAND [arguments] [flags]')]],
    ['COMMANDS', listed],
    ['TOPICS', Object.entries(topics).flatMap(([name, summary]) => entry(name, summary))],
    ...commonFlags.map(({ title, flags }) => [`FLAGS: ${title.replace(/:.*/, '')}`, flagEntries(flags)] as const),
    ...subjects.map((name) => [name.toUpperCase(), verbatim(texts[name] ?? '')] as const),
    ['EXIT STATUS', Object.values(exits).flatMap(({ code, meaning }) => entry(String(code), meaning))],
    ['SEE ALSO', [`.BR ${pageName('health')} (1),`, `.BR ${pageName('serve')} (1),`, `.BR ${pageName('init')} (1)`]],
  ])
}

const loaded: readonly Loaded[] = await Promise.all(
  Object.entries(commands).map(async ([id, load]) => ({ id, Class: (await load()) as Loaded['Class'] })),
)
const texts = Object.fromEntries(
  await Promise.all(
    Object.entries(helpTopics).map(async ([name, { text }]) => [name, await text({ commands })] as const),
  ),
)
const pages: Readonly<Record<string, string>> = {
  'svc.1': overview(loaded, String(packageJson()['description']), texts),
  ...Object.fromEntries(loaded.map((one) => [`${pageName(one.id)}.1`, commandPage(one)])),
}
await mkdir(folder, { recursive: true })
await Promise.all(Object.entries(pages).map(([name, text]) => writeFile(join(folder, name), text)))
process.stdout.write(`${Object.keys(pages).length} manual pages in ${folder}\n`)
