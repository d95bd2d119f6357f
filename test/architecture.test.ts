import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { describe, expect, test } from 'vitest'

const src = new URL('../src', import.meta.url).pathname

/** The import law: wing → wings that it may import, besides itself. Type-only imports count. From the ground up. */
const law: Record<string, readonly string[]> = {
  base: [],
  protocol: ['base'],
  checks: ['protocol', 'base'],
  watch: ['checks', 'protocol', 'base'],
  client: ['checks', 'protocol', 'base'],
  server: ['checks', 'watch', 'protocol', 'base'],
  store: ['watch', 'checks', 'protocol', 'base'],
  config: ['watch', 'checks', 'protocol', 'base'],
  accounts: ['store', 'protocol', 'base'],
  service: ['accounts', 'config', 'store', 'watch', 'checks', 'protocol', 'base'],
}
/** The same for what is above the wings. */
const above: Record<string, readonly string[]> = {
  cli: Object.keys(law),
  commands: ['cli', 'store', 'config', 'checks', 'protocol', 'base'],
  main: ['cli', 'commands'],
}

/**
 * The law inside the wings: folder → folders of its wing that it may import, from the bottom to the top. A file beside the
 * folders counts as one if it has a row; `.` is all other files beside them.
 */
const innerLaw: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  base: {
    errors: [],
    'file-errors': [],
    encoding: [],
    json: [],
    lasting: [],
    lazy: [],
    loopback: [],
    names: [],
    'own-files': [],
    pace: [],
    'probe-error': [],
    'running-process': [],
    sanitize: [],
    steady: [],
    suggest: [],
    zone: [],
    preload: ['errors', 'file-errors'],
    'proxy-variables': ['errors', 'loopback'],
    // Below everything that reads a path of the configuration.
    files: ['encoding', 'file-errors', 'lazy', 'own-files', 'probe-error', 'sanitize', 'system'],
    settings: ['errors', 'file-errors', 'files', 'loopback', 'probe-error', 'suggest'],
    format: ['settings'],
    net: [
      ...[
        'encoding',
        'file-errors',
        'files',
        'format',
        'json',
        'loopback',
        'probe-error',
        'sanitize',
        'settings',
        'zone',
      ],
    ],
    system: ['file-errors', 'files', 'loopback', 'own-files', 'probe-error'],
    cron: ['format', 'net', 'suggest'],
  },
  protocol: { '.': [], wire: ['.'], metadata: ['.'], service: ['.'] },
  checks: {
    // Where drivers are, and whether they are trusted: below the engine and the kinds.
    drivers: [],
    recognition: [],
    engine: ['drivers', 'recognition'],
    assert: ['engine'],
    folders: ['engine'],
    database: ['assert', 'engine'],
    kinds: ['assert', 'database', 'drivers', 'engine', 'folders', 'recognition'],
    child: ['kinds'],
    profiles: [],
    discover: ['kinds', 'recognition'],
    plan: ['kinds', 'profiles', 'engine'],
    reports: ['engine'],
  },
  watch: {
    periods: ['schedule'],
    configuration: [],
    watching: [],
    rehearsal: [],
    schedule: [],
    states: ['schedule'],
    notify: [],
    drill: ['notify'],
    outbox: ['notify', 'schedule', 'states'],
    silences: ['notify', 'states'],
    nodes: ['schedule', 'states', 'outbox'],
  },
  accounts: { auth: [], roles: [], heartbeats: [] },
  server: { '.': [], pages: ['.'], handle: ['.', 'pages'], start: ['.', 'handle'], index: ['.', 'start'] },
  store: {
    // The chain of seals is arithmetic over lines, and knows no store.
    audit: [],
    rows: ['.', 'audit'],
    postgres: ['.'],
    upkeep: ['.'],
    '.': ['audit', 'rows', 'postgres', 'upkeep'],
  },
  service: {
    part: [],
    'process-time': ['part'],
    local: [],
    reload: ['part'],
    accounts: ['local', 'part'],
    store: ['part'],
    watch: ['part', 'process-time'],
    health: ['local', 'part', 'watch'],
    results: ['local', 'part', 'watch', 'process-time'],
    silences: ['local', 'part', 'watch', 'process-time'],
    notify: ['part', 'silences', 'watch', 'process-time'],
    drill: ['local', 'notify', 'part', 'process-time'],
    nodes: ['local', 'notify', 'part', 'watch'],
    serve: [
      ...['part', 'local', 'reload', 'process-time'],
      ...['accounts', 'store', 'watch', 'silences', 'notify', 'drill', 'nodes', 'health', 'results'],
    ],
    open: ['part', 'local', 'accounts', 'watch', 'silences', 'drill', 'nodes', 'health', 'results', 'serve'],
  },
}

/**
 * The folders of the command line, from the bottom to the top: folder → folders of src/cli that it may import, besides itself.
 * Commands may import all of them.
 */
const cliLaw: Record<string, readonly string[]> = {
  io: [],
  render: ['io'],
  command: ['io', 'render'],
  settings: ['io', 'command'],
  keychain: ['io', 'command', 'settings'],
  credentials: ['io', 'command', 'settings', 'keychain'],
  session: ['io', 'render', 'command', 'settings', 'keychain', 'credentials'],
  api: ['io'],
  accounts: ['io', 'render'],
  backups: ['io', 'render'],
  heartbeats: ['io', 'render'],
  monitors: ['io', 'render', 'command', 'session'],
  nodes: ['render'],
  drivers: ['io', 'render', 'session'],
  notify: ['io', 'render', 'command', 'settings', 'keychain', 'session'],
  silences: ['render', 'command', 'session'],
  health: ['io', 'render', 'command', 'session'],
  fleet: ['io', 'render', 'command', 'settings', 'keychain', 'session', 'health'],
  roles: ['io', 'render', 'command', 'settings', 'session'],
  serve: ['io', 'render', 'settings', 'keychain', 'session'],
  'sign-in': ['io', 'settings', 'credentials', 'session'],
  setup: ['io', 'render', 'command', 'settings', 'keychain', 'credentials', 'session', 'drivers'],
  help: ['io', 'render', 'command', 'session', 'accounts', 'heartbeats', 'monitors', 'health', 'roles', 'setup'],
}

/** Packages that a folder may import; everything else is a violation. Node's own modules are free. */
const packages: Record<string, readonly string[]> = {
  'protocol/wire': ['csv-stringify', 'csv-parse'],
  'checks/reports': ['csv-stringify'],
  config: ['yaml'],
  'checks/profiles': ['yaml'],
  'base/cron': ['croner'],
  'checks/kinds': ['basic-ftp', 'jose', 'ldapts', 'mongodb', 'mysql2', 'pg', 'ssh2', 'tedious'],
  'checks/drivers': ['mongodb', 'ssh2', 'tedious'],
  'checks/database': ['mysql2', 'pg'],
  'checks/assert': ['fast-xml-parser', 're2js'],
  'base/system': ['systeminformation'],
  store: ['kysely', 'pg'],
  cli: ['@oclif/core', '@inquirer/input', '@inquirer/password', 'pino', 'sonic-boom'],
  // The process that accesses the keychain.
  main: ['@napi-rs/keyring'],
  commands: ['@oclif/core'],
  'accounts/auth': ['@zxcvbn-ts/language-common', 'jose'],
  'watch/notify': ['nodemailer', 'yaml'],
}

/** The wing of a file: `core/checks/kinds/tcp.ts` → checks; above the wings its folder: `cli`, `commands`, `main`. */
function wingOf(file: string): string {
  const parts = relative(src, file).split('/')
  if (parts[0] === 'core') return parts[1] ?? ''
  return parts.length === 1 ? 'main' : (parts[0] ?? '')
}

/** The folder of a file in its wing: `core/checks/kinds/tcp.ts` → kinds, `core/base/lazy.ts` → lazy. */
function folderOf(file: string): string {
  const [, wing = '', first = '', rest] = relative(src, file).split('/')
  if (rest !== undefined) return first
  const name = first.replace(/\.ts$/, '')
  return innerLaw[wing]?.[name] ? name : '.'
}

/** The folder of a file inside its wing, or the wing: `core/checks/kinds/tcp.ts` → checks/kinds, `core/store/data.ts` → store. */
const entranceOf = (file: string): string => {
  const [, wing = '', folder, rest] = relative(src, file).split('/')
  return rest === undefined ? wing : `${wing}/${folder}`
}

/** The folder of a file of the command line: `src/cli/render/list.ts` → render. */
const cliFolderOf = (file: string): string | undefined => /^cli\/([^/]+)(?=\/)/.exec(relative(src, file))?.[1]

/** The kind of a file in a folder of its own: `kinds/redis/resp.ts` → redis. */
const kindOf = (file: string): string | undefined => /^core\/checks\/kinds\/([^/]+)\//.exec(relative(src, file))?.[1]

type Import = { readonly from: string; readonly to: string; readonly specifier: string }

const pattern =
  /(?:^|\n)\s*(?:import|export)\b[^'"\n]*?(?:\n[^'"]*?)?\bfrom\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)\s*import\s+['"]([^'"]+)['"]/g

function importsOf(file: string, content: string): Import[] {
  // Comments may hold the word `from` in quotes.
  const code = content.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')
  return [...code.matchAll(pattern)].map((match) => {
    const specifier = match[1] ?? match[2] ?? match[3] ?? ''
    return { from: file, specifier, to: specifier.startsWith('.') ? join(dirname(file), specifier) : specifier }
  })
}

/** The rule that an import breaks, in a sentence, or nothing. */
function violation({ from, to, specifier }: Import): string | undefined {
  const [wing, other] = [wingOf(from), wingOf(to)]
  const where = relative(src, from)
  if (specifier.startsWith('node:')) return undefined
  if (!specifier.startsWith('.')) {
    const [scope = '', name] = specifier.split('/')
    const packageName = scope.startsWith('@') ? `${scope}/${name}` : scope
    const allowed = [packages[wing], packages[`${wing}/${folderOf(from)}`]].some((list) => list?.includes(packageName))
    return allowed ? undefined : `${where}: may not import the package ${packageName}`
  }
  if (kindOf(to) !== undefined && kindOf(from) !== kindOf(to) && !/\/(index|\w+-probe|probe)\.ts$/.test(to))
    return `${where}: another kind is entered through its index.ts (${specifier})`
  if (wing !== other) {
    if (!(law[wing] ?? above[wing])?.includes(other)) return `${where}: ${wing} may not import ${other} (${specifier})`
    return law[other] === undefined ? undefined : byItsIndex(where, to)
  }
  if (wing === 'cli') {
    const [here = '', there = ''] = [cliFolderOf(from), cliFolderOf(to)]
    if (here === there || cliLaw[here]?.includes(there)) return undefined
    return `${where}: the folder cli/${here} may not import cli/${there} (${specifier})`
  }
  const [here, there] = [folderOf(from), folderOf(to)]
  if (here === there || law[wing] === undefined) return undefined
  const allowed = innerLaw[wing]?.[here]
  if (allowed && !allowed.includes(there))
    return `${where}: ${wing}/${here} may not import ${wing}/${there} (${specifier})`
  return allowed && entranceOf(to) !== wing ? byItsIndex(where, to) : undefined
}

/** A folder that has an index.ts is entered by it. Of a box of tools, a kind loads only what it uses. */
function byItsIndex(where: string, to: string): string | undefined {
  const entrance = entranceOf(to)
  const inside = relative(join(src, 'core', entrance), to)
  if (inside === 'index.ts' || entrance === 'checks/kinds' || !existsSync(join(src, 'core', entrance, 'index.ts')))
    return undefined
  return `${where}: ${entrance} is entered by its index.ts, not by ${inside}`
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => join(src, file))
const imports = files.flatMap((file) => importsOf(file, readFileSync(file, 'utf8')))

/** A cycle through the given edges, as a list of files, or nothing. */
function findCycle(edges: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>()
  const path: string[] = []
  const visit = (node: string): readonly string[] | undefined => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node]
    if (done.has(node)) return undefined
    path.push(node)
    for (const next of edges.get(node) ?? []) {
      const cycle = visit(next)
      if (cycle) return cycle
    }
    path.pop()
    done.add(node)
    return undefined
  }
  for (const node of edges.keys()) {
    const cycle = visit(node)
    if (cycle) return cycle
  }
  return undefined
}

function edgesOf(all: readonly Import[]): ReadonlyMap<string, readonly string[]> {
  const edges = new Map<string, string[]>()
  for (const { from, to, specifier } of all) {
    if (specifier.startsWith('.')) edges.set(from, [...(edges.get(from) ?? []), to])
  }
  return edges
}

/**
 * Calls that write past the one place that handles failed writes, or that end the process before a write is complete.
 */
const direct = /\bstd(?:out|err)\.write\b|\bconsole\.\w|\bprocess\.exit\(/g
const mayWrite: Record<string, readonly string[]> = {
  // Children of svc, whose standard output is a pipe to it.
  'keychain-child.ts': ['stdout.write'],
  'core/checks/child/serve.ts': ['stdout.write'],
  'core/base/system/serve-tasks.ts': ['stdout.write'],
}

const directWrites = (file: string, content: string): readonly string[] =>
  [...content.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '').matchAll(direct)]
    .map(([result]) => result)
    .filter((result) => !mayWrite[relative(src, file)]?.includes(result))
    .map((result) => `${relative(src, file)}: ${result}`)

/** The command line: its streams are those of its Io. */
const isCommandLine = (file: string): boolean =>
  /^(?:cli\/|commands\/|main\.ts$|registry\.ts$)/.test(relative(src, file))
/** The one file of the command line that touches the process. */
const processFile = join(src, 'cli/io/process.ts')

/** Names of what a process has once. Those of functions count as members, too, as in `os.homedir`. */
const ofProcess = new Set(['process', 'globalThis', 'console'])
const functionsOfProcess = new Set(['homedir', 'userInfo'])
const modulesOfProcess = new Set(['process', 'node:process', 'console', 'node:console'])

type Node = { readonly type: string } & Readonly<Record<string, unknown>>
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as { readonly type?: unknown }).type === 'string'

/** The parts of the process that a file touches: the names that it uses for them. Texts and comments do not count. */
function touchesOf(content: string): readonly string[] {
  const touches = new Set<string>()
  const visit = (node: unknown, isMember: boolean): void => {
    if (Array.isArray(node)) for (const one of node) visit(one, isMember)
    if (!isNode(node)) return
    const { type, name, source, computed, shorthand } = node
    if (type === 'Identifier' && typeof name === 'string') {
      if (functionsOfProcess.has(name) || (!isMember && ofProcess.has(name))) touches.add(name)
    }
    const module = isNode(source) ? source['value'] : undefined
    if (typeof module === 'string' && modulesOfProcess.has(module)) touches.add(module)
    for (const [key, value] of Object.entries(node)) {
      visit(value, (key === 'property' || key === 'key') && computed !== true && shorthand !== true)
    }
  }
  visit(parseSync('x.ts', content).program, false)
  return [...touches]
}

describe('the process', () => {
  test('is touched by one file of the command line: everything else gets an Io', () => {
    const commandLine = files.filter(isCommandLine)
    const touching = commandLine.filter((file) => touchesOf(readFileSync(file, 'utf8')).length > 0)
    expect(commandLine.length).toBeGreaterThan(100)
    expect(touching.map((file) => relative(src, file))).toEqual([relative(src, processFile)])
  })

  test('becomes an Io in one place: commands and their parts take the one that they get', () => {
    const makers = files.filter((file) => /\bprocessIo\b/.test(readFileSync(file, 'utf8')))
    expect(makers.map((file) => relative(src, file)).sort()).toEqual(['cli/io/process.ts', 'main.ts'])
  })

  test.each([
    ['process.exit(1)', ['process']],
    ["const { env } = process\nenv['X']", ['process']],
    ["import { env } from 'node:process'", ['node:process']],
    ["const { env } = await import('node:process')", ['node:process']],
    ["import { homedir } from 'node:os'\nhomedir()", ['homedir']],
    ["import os from 'node:os'\nos.userInfo()", ['userInfo']],
    ["globalThis['process'].env", ['globalThis']],
    ['const all = { process }', ['process']],
    ["console.log('x')", ['console']],
  ])('a planted %s is detected', (code, touches) => {
    expect(touchesOf(code)).toEqual(touches)
  })

  test.each(["say('the process has ended')", 'io.process.end()', 'const x = { process: 1 }', '// process.exit()'])(
    '%s does not touch it',
    (code) => {
      expect(touchesOf(code)).toEqual([])
    },
  )
})

describe('standard output and standard error', () => {
  const others = files.filter((file) => !isCommandLine(file))

  test('outside of the command line, are written in one place, which handles failures', () => {
    expect(others.flatMap((file) => directWrites(file, readFileSync(file, 'utf8')))).toEqual([])
  })

  test.each([
    ["process.stdout.write('x')", 'core/x.ts: stdout.write'],
    ["const { stderr } = process\nstderr.write('x')", 'core/x.ts: stderr.write'],
    ["console.log('x')", 'core/x.ts: console.l'],
    ['process.exit(1)', 'core/x.ts: process.exit('],
  ])('a planted %s is detected', (code, complaint) => {
    expect(directWrites(join(src, 'core/x.ts'), code)).toEqual([complaint])
  })
})

/** A search for a monitor or a kind by a name in quotes. */
const namedSearch = /\b(?:kind|monitor)\.name [!=]== ['"`]/

describe('kinds and monitors', () => {
  test('are not searched by a name in quotes: they declare what others need to know', () => {
    const searching = files.filter((file) => namedSearch.test(readFileSync(file, 'utf8')))
    expect(searching.map((file) => relative(src, file))).toEqual([])
  })

  test('declare the services of svc that they use: the engine declares none', () => {
    const declaring = files.filter((file) => /^\s*interface Services \{\s+\S/m.test(readFileSync(file, 'utf8')))
    const folders = new Set(declaring.map(folderOf))
    expect([declaring.length > 2, ...folders]).toEqual([true, 'kinds'])
  })

  test.each(["monitors.find((monitor) => monitor.name === 'own store')", "if (kind.name !== 'exec') return"])(
    'a planted search by name is detected: %s',
    (code) => {
      expect(code).toMatch(namedSearch)
    },
  )
})

describe('the lease of a node', () => {
  const linesOf = (pattern: RegExp): readonly string[] =>
    files
      .filter((file) => /core\/(service|watch|server)\/(?!nodes\/)/.test(file))
      .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
      .filter((line) => pattern.test(line) && !/^\s*(\*|\/\/|\/\*|import)/.test(line))

  test('is known in at most 60 lines besides the folders of nodes', () => {
    const asking = linesOf(/\blease\.\w|\bisShared\b|\btakeOver\b|\bsoleNode\b/)
    expect(asking.length).toBeGreaterThan(20)
    expect(asking.length).toBeLessThanOrEqual(60)
  })

  test('is always there: nobody asks whether there are nodes', () => {
    expect(linesOf(/\b(lease|nodes)\?\.(?!mayAsk)/)).toEqual([])
  })
})

describe('the import law', () => {
  test('each import obeys it', () => {
    expect(imports.length).toBeGreaterThan(100)
    expect(imports.flatMap((edge) => violation(edge) ?? [])).toEqual([])
  })

  test('each file is in a wing and a folder that the law names', () => {
    const isNamed = (file: string): boolean => {
      const wing = wingOf(file)
      if (wing === 'cli') return (cliFolderOf(file) ?? '') in cliLaw
      const inner = innerLaw[wing]
      return wing in above || (wing in law && (!inner || folderOf(file) in inner))
    }
    expect(files.filter((file) => !isNamed(file)).map((file) => relative(src, file))).toEqual([])
  })

  test('there are ten wings, and each imports only those below it', () => {
    const wings = Object.keys(law)
    expect(wings).toHaveLength(10)
    const back = wings.flatMap((wing, at) => (law[wing] ?? []).filter((other) => !wings.slice(0, at).includes(other)))
    expect(back).toEqual([])
  })

  test('docs/architecture.md has a row for each wing, with the wings that it imports', () => {
    const page = readFileSync(new URL('../docs/architecture.md', import.meta.url), 'utf8')
    const rows = [...page.matchAll(/^\| `(\w+)` \| .* \| (.*?) ?\|$/gm)].map(
      ([, wing = '', imports = '']) => [wing, imports.split(', ').filter(Boolean)] as const,
    )
    expect(rows).toEqual(Object.entries(law))
  })

  test('no arrow between folders of the command line runs back: each imports folders below it', () => {
    const folders = Object.keys(cliLaw)
    const back = folders.flatMap((folder, at) =>
      (cliLaw[folder] ?? [])
        .filter((other) => !folders.slice(0, at).includes(other))
        .map((other) => `${folder} → ${other}`),
    )
    expect(back).toEqual([])
  })

  test('there are no cycles, even of type-only imports', () => {
    const cycle = findCycle(edgesOf(imports))
    expect(cycle?.map((file) => relative(src, file))).toBeUndefined()
  })

  test.each([
    [
      'core/protocol/wire/json.ts',
      "import { x } from '../../checks/engine/index.ts'",
      'protocol may not import checks',
    ],
    ['core/protocol/wire/json.ts', "import type { X } from '../../../cli/base.ts'", 'protocol may not import cli'],
    ['core/server/x.ts', "const x = await import('../store/index.ts')", 'server may not import store'],
    ['core/checks/kinds/x.ts', "import pg from 'express'", 'may not import the package express'],
    [
      'core/service/local.ts',
      "import { x } from '../checks/engine/run.ts'",
      'checks/engine is entered by its index.ts',
    ],
    ['core/service/local.ts', "import { x } from '../store/data.ts'", 'store is entered by its index.ts'],
    ['core/checks/engine/x.ts', "import { x } from '../kinds/tcp.ts'", 'checks/engine may not import checks/kinds'],
    ['core/watch/states/x.ts', "import { x } from '../nodes/index.ts'", 'watch/states may not import watch/nodes'],
    ['core/store/audit/x.ts', "import { x } from '../data.ts'", 'store/audit may not import store/.'],
    [
      'core/checks/kinds/http-steps/x.ts',
      "import { x } from '../ftp/link.ts'",
      'another kind is entered through its index.ts',
    ],
    [
      'cli/render/x.ts',
      "import type { X } from '../setup/doctor.ts'",
      'the folder cli/render may not import cli/setup',
    ],
    ['cli/command/x.ts', "await import('../session/running.ts')", 'the folder cli/command may not import cli/session'],
    ['cli/io/x.ts', "import { x } from '../x.ts'", 'the folder cli/io may not import cli/'],
    ['core/protocol/index.ts', "export * from './wire/index.ts'", 'protocol/. may not import protocol/wire'],
    ['core/client/x.ts', "import {\n  a,\n  b,\n} from '../server/index.ts'", 'client may not import server'],
  ])('a planted violation is detected: %s %s', (file, code, complaint) => {
    const [edge] = importsOf(join(src, file), code)
    expect(edge && violation(edge)).toContain(complaint)
  })

  test('a planted cycle is detected', () => {
    const edge = (from: string, to: string): Import => ({ from, to, specifier: './x' })
    expect(findCycle(edgesOf([edge('a', 'b'), edge('b', 'c'), edge('c', 'a')]))).toEqual(['a', 'b', 'c', 'a'])
    expect(findCycle(edgesOf([edge('a', 'b'), edge('a', 'c'), edge('b', 'c')]))).toBeUndefined()
  })
})
