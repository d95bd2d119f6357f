import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lists, runCommand, SvcCommand } from '../../src/cli/command/base.ts'
import { answersOf } from '../../src/cli/help/records.ts'
import { integer, string } from '../../src/cli/render/document.ts'
import { list } from '../../src/cli/render/list.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { commands } from '../../src/registry.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { answers, documentOf, schemaErrors } from '../support/program/documents.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { adminOver } from '../support/store/admin.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { atServer, elsewhere, here, type Line, password, writeFiles } from './document-lines.ts'

/** Commands without a document: `api` prints the bytes of the server, `serve` a log. */
const withoutDocument = ['api', 'serve']

/** The documents of the interface, of health, of roles and of `monitors list`, which keep their names. */
const ownNames = [
  'health',
  'monitors list',
  'roles assign',
  'roles assign --from-file',
  'roles extend',
  'roles give-back',
  'roles show',
  'roles unassign',
  'roles unassign --from-file',
]

type Node = {
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
  readonly anyOf?: readonly Node[]
}
/** The names of all members, at any depth. */
const namesIn = ({ properties = {}, items, anyOf = [] }: Node): readonly string[] => [
  ...Object.keys(properties),
  ...[...Object.values(properties), ...(items ? [items] : []), ...anyOf].flatMap(namesIn),
]

/** Why a document has another shape than `{store or target, <things>: [...]}` in camelCase; empty if it has not. */
function otherStyle(schema: Node): readonly string[] {
  const members = Object.entries(schema.properties ?? {})
  const things = members.filter(([, { items }]) => items?.properties !== undefined)
  return [
    ...(['store', 'target'].includes(members[0]?.[0] ?? '') ? [] : ['it does not begin with store or target']),
    ...(things.length === 1 ? [] : [`it has ${things.length} lists of objects`]),
    ...namesIn(schema).flatMap((name) => (/^[a-z][A-Za-z]*$/.test(name) ? [] : [`${name} is not in camelCase`])),
  ]
}

describe('what every command prints with --json', () => {
  const folder = temporaryFolder()
  const homes: Home[] = []
  const ends: (() => Promise<void>)[] = []
  const printed: (Line & { readonly stdout: string; readonly stderr: string })[] = []

  async function printAll(home: Home, lines: readonly Line[]): Promise<void> {
    for (const one of lines) {
      const { stdout, stderr } = await home.run([...one.args, '--json'], { stdin: `${one.stdin}\n` })
      printed.push({ ...one, stdout, stderr })
    }
  }

  beforeAll(async () => {
    writeFiles(folder)
    homes.push(svcHome(), svcHome())
    const { service, runtime } = await testCore({
      config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
      store: join(folder, 'store', 'svc.db'),
    })
    await adminOver(service).users.add(
      { userName: 'bob', password },
      { who: 'local:tester', correlationId: 'documents' },
    )
    const server = await testServer({ service, runtime })
    ends.push(server.stop, runtime.close)
    await printAll(homes[0] as Home, here(folder))
    await printAll(homes[1] as Home, atServer(server.url))
  })
  afterAll(async () => {
    for (const end of ends) await end()
    for (const home of homes) home.remove()
  })

  const names = [...new Set([...here(''), ...atServer('')].map(({ name }) => name))]

  test.each(names)('K17 svc %s: is one line that its JSON Schema describes completely', (name) => {
    const own = printed.filter((one) => one.name === name)
    expect(own.length).toBeGreaterThan(0)
    for (const { args, stdout, stderr } of own) {
      expect(stdout, `${args.join(' ')}: ${stderr}`).toMatch(/^[{[].*[\]}]\n$/)
      documentOf(name, stdout)
    }
  })

  test('K17 has a JSON Schema for every command, and is validated against each', () => {
    const declared = [...answers.keys()]
    const commandsWith = new Set(declared.map((name) => name.replace(/ --.*/, '')))
    const all = Object.keys(commands).map((id) => id.replaceAll(':', ' '))
    expect(all.filter((name) => !commandsWith.has(name)).toSorted()).toEqual(withoutDocument)
    expect(declared.filter((name) => !names.includes(name)).toSorted()).toEqual(Object.keys(elsewhere).toSorted())
    for (const [name, file] of Object.entries(elsewhere)) {
      const validates = readFileSync(new URL(file, import.meta.url), 'utf8').includes(`documentOf('${name}'`)
      expect(validates, `${file} validates ${name}`).toBe(true)
    }
  })

  test('K17 has one style: a store or target, then one list of things, all in camelCase', () => {
    const others = [...answers.values()].map(({ name, schema }) => [name, otherStyle(schema() as Node)] as const)
    expect(others.filter(([, why]) => why.length > 0).map(([name]) => name)).toEqual(
      [...answers.keys()].filter((name) => ownNames.includes(name)),
    )
    const planted = {
      properties: {
        target: {},
        Users: { items: { properties: { userName: {} } } },
        more: { items: { properties: {} } },
      },
    }
    expect(otherStyle(planted)).toEqual(['it has 2 lists of objects', 'Users is not in camelCase'])
    expect(otherStyle({ properties: { users: { items: { properties: {} } } } })).toEqual([
      'it does not begin with store or target',
    ])
  })

  test('contradicts the JSON Schema where a member is missing, is another or has another type', () => {
    const users = { store: '/s.db', users: [] }
    expect(schemaErrors('users list', users)).toEqual([])
    for (const invalid of [
      { users: [] },
      { ...users, more: 1 },
      { ...users, users: [{}] },
      { ...users, store: 7 },
      [],
    ]) {
      expect(schemaErrors('users list', invalid).length, JSON.stringify(invalid)).toBeGreaterThan(0)
    }
  })

  test.each([
    [['users', 'show', 'nobody']],
    [['health', '-t', 'Sqll']],
    [['monitors', 'validate', '--config', 'missing.yaml']],
    [['roles', 'show', 'ann', '--server', 'http://127.0.0.1:1']],
  ])('is the document of a failure: %j', async (args) => {
    const { code, stdout } = await (homes[0] as Home).run([...args, '--json'])
    expect(code).toBeGreaterThan(1)
    documentOf('error', stdout)
  })

  const listCommands: readonly (readonly [name: string, rest: readonly string[]])[] = [
    ['audit list', []],
    ['backup', ['FOLDER/backup.db', '--overwrite']],
    ['config list', []],
    ['doctor', ['--local']],
    ['heartbeats list', []],
    ['drivers list', []],
    ['history', []],
    ['impact', ['nobody', '--config', 'FOLDER/monitors.yaml']],
    ['keys list', []],
    ['monitors kinds', []],
    ['monitors list', ['--type', 'Sql']],
    ['monitors profiles', []],
    ['monitors test', ['nobody', '--config', 'FOLDER/monitors.yaml']],
    ['notify list', ['--config', 'FOLDER/monitors.yaml']],
    ['notify test', ['--config', 'FOLDER/monitors.yaml']],
    ['profile list', []],
    ['silence list', []],
    ['restore', ['FOLDER/backup.db']],
    ['roles assign --from-file', ['FOLDER/changes.csv', '--dry-run']],
    ['roles history', ['ann']],
    ['roles holders', ['Admin']],
    ['roles holders --at', ['0m', 'Admin']],
    ['roles unassign --from-file', ['FOLDER/changes.csv', '--dry-run']],
    ['secrets list', []],
    ['sessions list', ['--user', 'ann']],
    ['users list', []],
  ]

  test.each(listCommands)(
    'K17 svc %s: a pipe gets a line of field names, and --no-header leaves it out',
    async (name, rest) => {
      const home = homes[0] as Home
      const args = [...name.split(' '), ...rest.map((word) => word.replace('FOLDER', folder))]
      const whole = await home.run(args)
      const [header = '', ...rows] = whole.stdout.split('\n')
      const { fields } = answers.get(name) ?? {}
      expect(header.split('\t')).toEqual(fields ?? expect.arrayContaining(['Target', 'MonitorName']))
      const without = await home.run([...args, '--no-header'])
      // Figures and times differ between two runs.
      const shape = (lines: readonly string[]): readonly number[] => lines.map((text) => text.split('\t').length)
      expect(shape(without.stdout.split('\n'))).toEqual(rows.length > 1 ? shape(rows) : [1])
      expect(without.stdout).not.toContain(header)
      const terminal = await home.run(args, { columns: 100 })
      expect(terminal.stdout).not.toContain(header)
    },
  )

  // Their names once more: these answer differently at each run, or act.
  const formatLines = [...listCommands, ['health', ['-m', 'Basic', '-t', 'App']] as const]
  test.each(formatLines)(
    'K17 svc %s: -o table, json and tsv are the same on a terminal and in a pipe, and --json is json',
    async (name, rest) => {
      const home = homes[0] as Home
      const args = [...name.split(' '), ...rest.map((word) => word.replace('FOLDER', folder))]
      const columns = 120
      const printed = async (format: readonly string[], place = {}): Promise<string> => {
        const { stdout } = await home.run([...args, ...format], place)
        // Figures, times and hashes differ between two runs.
        return stdout.replaceAll(/[\da-f.:-]+/g, '#').replaceAll(/ +|─+/g, ' ')
      }
      const forms = { table: [{ columns }, []], tsv: [{}, []], json: [{}, ['--json']] } as const
      for (const [format, [place, flags]] of Object.entries(forms)) {
        const pipe = await printed(['-o', format])
        expect([format, await printed(['--output', format], { columns })]).toEqual([format, pipe])
        if (name === 'health' && format === 'tsv') continue
        expect([format, await printed(flags, place)]).toEqual([format, pipe])
      }
      const both = await home.run([...args, '--json', '-o', 'tsv'])
      expect([both.code, both.stdout + both.stderr]).toEqual([2, expect.stringContaining('cannot be combined')])
      const mistyped = await home.run([...args, '-o', 'tvs'])
      expect([mistyped.code, mistyped.stderr]).toEqual([2, expect.stringContaining('Did you mean tsv?')])
    },
  )

  test('every command that prints a list is among them, and no other takes --no-header or --output', async () => {
    const declared = [...answers.values()].filter(({ isList }) => isList).map(({ name }) => name)
    // Answered by a server that runs, by a store with a drill, by a svc.yaml that changes, and by one with nodes.
    // A pipe gets the table of svc health, and records on request.
    const others = ['serve reload', 'drill', 'nodes', 'health', 'monitors add', 'monitors edit', 'monitors remove']
    expect(declared.toSorted()).toEqual([...listCommands.map(([name]) => name), ...others].toSorted())
    const refused = await (homes[0] as Home).run(['users', 'show', 'ann', '--no-header'])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('unknown flag --no-header')])
    const takes = async (id: string): Promise<boolean> => {
      const { flags, baseFlags } = (await commands[id]?.()) ?? {}
      return Object.keys({ ...flags, ...baseFlags }).includes('output')
    }
    const ids = Object.keys(commands)
    const taking = (await Promise.all(ids.map(takes))).flatMap((does, at) => (does ? [ids[at]] : []))
    const ofLists = new Set(declared.map((name) => name.replace(/ --.*$/, '').replaceAll(' ', ':')))
    // The file that svc import writes.
    expect(taking.toSorted()).toEqual([...ofLists, 'import'].toSorted())
  })
})

/** A command as its author writes it: one file, and nothing of `--json` in it but the declaration of the list. */
const planets = list<{ readonly name: string; readonly moons: number }>()({
  documentOnly: { target: string },
  rows: 'planets',
  columns: [
    { key: 'name', is: string, title: 'NAME' },
    { key: 'moons', is: integer, title: 'MOONS', align: 'right' },
  ],
})
class Planets extends SvcCommand {
  static override summary = 'List the planets'
  static override answers = { '': lists(async () => planets) }
  protected async perform(): Promise<undefined> {
    await this.parse(Planets)
    this.printList(planets.render([{ name: 'Mars', moons: 2 }], { target: 'the sun' }, this.output))
  }
}
const load = async () => Planets

describe('a list command that one file declares', () => {
  const run = async (...argv: readonly string[]): Promise<string> => {
    const { io, stdout } = capturedIo()
    await runCommand(load, argv, io, 'planets')
    return stdout()
  }

  test('has a document, a header line, --no-header, a JSON Schema and its fields in the help', async () => {
    expect(await run('--json')).toBe('{"target":"the sun","planets":[{"name":"Mars","moons":2}]}\n')
    expect(await run()).toBe('Name\tMoons\nMars\t2\n')
    expect(await run('--no-header')).toBe('Mars\t2\n')
    const [answer] = await answersOf({ planets: load })
    expect(answer).toMatchObject({ name: 'planets', isList: true, fields: ['Name', 'Moons'] })
    expect(answer?.schema()).toMatchObject({ required: ['target', 'planets'] })
  })
})
