import * as oclifArgs from '@oclif/core/args'
import * as oclifFlags from '@oclif/core/flags'
import { type ArgInput, type FlagInput, parse as parseWithOclif } from '@oclif/core/parser'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { argument, boolean, custom, parseUsual } from '../../src/cli/command/flags.ts'
import { commands } from '../../src/registry.ts'

type Table = { readonly flags: FlagInput; readonly args: ArgInput }

const tables = new Map<string, Table>()
for (const [id, load] of Object.entries(commands)) {
  const Command = await load()
  tables.set(id, { flags: { ...Command.baseFlags, ...Command.flags }, args: Command.args })
}

/** Values that some flag takes, and some that none does. */
const value = fc.oneof(
  fc.constantFrom('Basic', 'advanced', 'Sql', 'all', 'json', 'warn', 'never', '5s', '2m', '17', 'http://127.0.0.1:1'),
  fc.constantFrom('', ' ', '-', '--', '-1', '-x', 'a=b', '=', 'no-such', '--json', '-q', '__proto__'),
  fc.string({ maxLength: 6 }),
)

/** Command lines of a table: its flags in every form, values, arguments, and words that are none of these. */
function lines({ flags, args }: Table): fc.Arbitrary<readonly string[]> {
  const names = fc.constantFrom(...Object.keys(flags))
  const char = (name: string): string => flags[name]?.char ?? 'z'
  const word = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(names, value).map(([name, text]) => [`--${name}`, text]) },
    { weight: 3, arbitrary: names.map((name) => [`--${name}`]) },
    { weight: 3, arbitrary: fc.tuple(names, value).map(([name, text]) => [`--${name}=${text}`]) },
    { weight: 2, arbitrary: fc.tuple(names, value).map(([name, text]) => [`-${char(name)}`, text]) },
    { weight: 1, arbitrary: fc.tuple(names, value).map(([name, text]) => [`-${char(name)}${text}`]) },
    { weight: 1, arbitrary: names.map((name) => [`--no-${name}`]) },
    { weight: Object.keys(args).length + 1, arbitrary: value.map((text) => [text]) },
  )
  return fc.array(word, { maxLength: 5 }).map((words) => words.flat())
}

describe('a command line that is parsed without oclif', () => {
  test.each([...tables.keys()])('of svc %s has the result that oclif gives', async (id) => {
    const table = tables.get(id) as Table
    await fc.assert(
      fc.asyncProperty(lines(table), async (argv) => {
        const usual = await parseUsual(table, argv)
        if (!usual) return
        const { flags, args } = await parseWithOclif([...argv], table)
        expect(usual).toEqual({ flags, args })
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    [[]],
    [['--mode', 'Basic']],
    [['-m', 'advanced', '-t', 'App', '-t', 'Sql', '--json']],
    [['--type=Sql', '--server=https://svc.example.com/ops', '--wait', '5m', '-q']],
    [['--only', 'disk', '--only=memory', '--cached']],
    [['App,Sql', '-t', 'Mongo,Ftp']],
    [['App', '-t', 'Mongo', 'Sql,Ftp', 'all']],
  ])('accepts svc health %j', async (argv) => {
    const table = tables.get('health') as Table
    const usual = await parseUsual(table, argv)
    const { flags, args } = await parseWithOclif([...argv], table)
    expect(usual).toEqual({ flags, args })
    expect(usual).toBeDefined()
  })

  test.each([
    [['--mod', 'Basic']],
    [['--mode']],
    [['--mode', 'Deep']],
    [['--mode', '-q']],
    [['--mode', 'Basic', '--mode', 'Basic']],
    [['-mBasic']],
    [['-qm', 'Basic']],
    [['--json=yes']],
    [['--no-json']],
    [['--', '--json']],
    [['--constructor', 'x']],
  ])('rejects svc health %j, which is left to oclif', async (argv) => {
    expect(await parseUsual(tables.get('health') as Table, argv)).toBeUndefined()
  })

  test('rejects the flags of a command with a property that only oclif supports', async () => {
    const flags = { plain: boolean(), port: custom<string>({ default: '8790' })() }
    expect(await parseUsual({ flags, args: {} }, ['--plain'])).toBeUndefined()
    expect(await parseUsual({ flags: { plain: flags.plain }, args: {} }, ['--plain'])).toEqual({
      flags: { plain: true },
      args: {},
    })
    const args = { name: argument({ description: 'read from standard input when it is missing' }) }
    expect(await parseUsual({ flags: {}, args }, ['alice'])).toBeUndefined()
  })
})

describe('flags and arguments are declared as in oclif', () => {
  const parse = async (input: string): Promise<string> => input
  const plain = (declared: object): object => JSON.parse(JSON.stringify(declared)) as object

  test.each([
    [
      'a flag without a value',
      boolean({ char: 'q', description: 'd' }),
      oclifFlags.boolean({ char: 'q', description: 'd' }),
    ],
    [
      'a flag with one',
      custom<string>({ char: 'm', parse })({ description: 'd' }),
      oclifFlags.custom<string>({ char: 'm', parse })({ description: 'd' }),
    ],
    [
      'a flag with several',
      custom<string>()({ multiple: true, multipleNonGreedy: true }),
      oclifFlags.custom<string>()({ multiple: true, multipleNonGreedy: true }),
    ],
    [
      'an argument',
      argument({ name: 'NAME', ignoreStdin: true }),
      oclifArgs.string({ name: 'NAME', ignoreStdin: true }),
    ],
  ])('%s', async (_, ours, theirs) => {
    expect(plain(ours)).toEqual(plain(theirs))
    expect(Object.keys(ours)).toEqual(Object.keys(theirs))
  })
})
