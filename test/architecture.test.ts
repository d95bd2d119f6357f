import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { describe, expect, test } from 'vitest'

const src = new URL('../src', import.meta.url).pathname

/** The import law: folder → folders it may import, besides itself. Type-only imports count. */
const law: Record<string, readonly string[]> = {
  main: ['cli', 'commands'],
  commands: [
    'audit',
    'file-errors',
    'sanitize',
    'cli',
    'protocol',
    'service',
    'errors',
    'suggest',
    'loopback',
    'settings',
    'plan',
    'discover',
    'drivers',
    'config',
    'names',
  ],
  cli: [
    // The JSON Schema of the document of `svc health`.
    'metadata',
    'file-errors',
    'files',
    'sanitize',
    'protocol',
    'service',
    'errors',
    'suggest',
    'config',
    'discover',
    'drivers',
    'settings',
    'plan',
    'reports',
    'wire',
    'client',
    'server',
    'store',
    'open',
    'lazy',
    'preload',
    'own-files',
    'running-process',
    'format',
    'loopback',
    'names',
    'notify',
    'json',
    'audit',
    'rehearsal',
  ],
  protocol: ['errors'],
  names: [],
  errors: [],
  suggest: [],
  loopback: [],
  sanitize: [],
  'own-files': [],
  'running-process': [],
  // JSON of others, before and after it is parsed.
  json: [],
  // What the codes of the system mean for a file: constants that every folder may need.
  'file-errors': [],
  lazy: [],
  pace: [],
  preload: ['errors', 'file-errors'],
  // Administration in process: types only.
  admin: ['protocol'],
  // Types of reports only: what /metrics shows.
  service: ['admin', 'incidents', 'protocol', 'reports', 'serve-settings'],
  incidents: ['protocol'],
  'serve-settings': ['protocol', 'settings'],
  // The folder net contains what a sign-in with OpenID needs to call a provider as the monitors of kind oidc do.
  auth: ['files', 'service', 'protocol', 'errors', 'store', 'names', 'loopback', 'lazy', 'net', 'probe-error', 'json'],
  roles: ['protocol', 'errors', 'store', 'names', 'wire'],
  heartbeats: ['service', 'protocol', 'errors', 'store'],
  wire: ['protocol', 'errors', 'json'],
  'probe-error': [],
  // Where drivers are, and whether they are trusted: below the engine and the kinds.
  drivers: ['file-errors', 'probe-error', 'own-files'],
  // Below everything that reads a path of the configuration.
  files: ['file-errors', 'encoding', 'sanitize', 'system', 'probe-error', 'lazy', 'own-files'],
  format: ['settings'],
  encoding: [],
  settings: ['file-errors', 'files', 'errors', 'suggest', 'probe-error'],
  net: ['file-errors', 'encoding', 'files', 'sanitize', 'settings', 'format', 'probe-error', 'loopback', 'json'],
  engine: [
    'drivers',
    'recognition',
    'file-errors',
    'files',
    'net',
    'settings',
    'protocol',
    'errors',
    'format',
    'probe-error',
    'loopback',
    'lazy',
  ],
  // What decides over time. Of the settings and the engine it uses types, and the heap.
  schedule: ['engine', 'protocol', 'settings'],
  states: ['schedule', 'protocol', 'probe-error'],
  // What receivers are told of incidents, and how.
  notify: ['engine', 'files', 'json', 'net', 'settings', 'system', 'format', 'loopback', 'probe-error', 'protocol'],
  // Whether svc may say that it watches. Uses nothing.
  watching: [],
  // Whether the way of an alarm works. Of the receivers it uses types.
  drill: ['cron', 'notify', 'settings'],
  // What each receiver knows, and what it is sent next. Of the receivers it uses types.
  outbox: ['notify', 'schedule', 'states', 'probe-error'],
  // Who runs what where several nodes share a store. Of the outbox and the states it uses types, of the schedule the hash.
  nodes: ['schedule', 'states', 'outbox'],
  // Servers whose faults a script gives. Of the engine it uses results.
  rehearsal: ['engine', 'settings', 'probe-error', 'protocol'],
  // Times of cron expressions.
  cron: ['net', 'suggest'],
  // Whose notifications wait, and until when. Of the states it uses types.
  quiet: ['cron', 'notify', 'states', 'settings', 'format', 'lazy', 'protocol'],
  // What the audit proves, and what it says of the past.
  audit: ['json'],
  // What results say over time. Of the engine and the protocol it uses nothing.
  history: [],
  assert: ['encoding', 'engine', 'net', 'settings', 'protocol', 'format'],
  system: ['file-errors', 'files', 'net', 'protocol', 'probe-error', 'loopback', 'own-files'],
  database: ['files', 'engine', 'net', 'assert', 'settings', 'protocol', 'format', 'probe-error', 'loopback'],
  folders: ['engine', 'net', 'settings', 'format', 'probe-error'],
  kinds: [
    'drivers',
    'recognition',
    'cron',
    'file-errors',
    'files',
    'wire',
    'engine',
    'net',
    'assert',
    'settings',
    'system',
    'database',
    'folders',
    'protocol',
    'errors',
    'suggest',
    'lazy',
    'format',
    'probe-error',
    'loopback',
    'running-process',
  ],
  child: ['kinds', 'system', 'probe-error'],
  profiles: ['lazy', 'settings'],
  // How kinds recognize servers: below the kinds, which declare it.
  recognition: ['net', 'loopback'],
  discover: ['kinds', 'recognition', 'net', 'system', 'protocol', 'loopback'],
  plan: ['kinds', 'profiles', 'engine', 'net', 'settings', 'protocol', 'errors', 'probe-error'],
  config: [
    'own-files',
    'drivers',
    'serve-settings',
    'file-errors',
    'files',
    'sanitize',
    'protocol',
    'errors',
    'lazy',
    'suggest',
    'service',
    'engine',
    'assert',
    'notify',
    'quiet',
    'drill',
    'rehearsal',
    'cron',
    'plan',
    'schedule',
    'settings',
    'profiles',
    'discover',
    'loopback',
    'names',
  ],
  store: [
    'drill',
    'quiet',
    'audit',
    'history',
    'states',
    'outbox',
    // Of the nodes it uses types, and how long a row is live.
    'nodes',
    'pace',
    'file-errors',
    // Names of objects in a database that others have made.
    'sanitize',
    'files',
    'service',
    'system',
    'protocol',
    'errors',
    'loopback',
    'lazy',
    'own-files',
    'running-process',
    'names',
    'nodes',
  ],
  reports: ['engine', 'protocol', 'sanitize', 'lazy', 'pace'],
  metadata: ['protocol'],
  server: [
    'format',
    'pace',
    'service',
    'protocol',
    'wire',
    'errors',
    'loopback',
    'reports',
    'metadata',
    'lazy',
    'preload',
    // For the file of the Unix socket.
    'file-errors',
    'own-files',
  ],
  client: ['file-errors', 'files', 'sanitize', 'service', 'protocol', 'wire', 'reports', 'errors', 'lazy', 'loopback'],
  local: ['service', 'protocol', 'errors', 'auth', 'roles', 'heartbeats', 'engine', 'reports', 'store'],
  // What each feature brings to the composition.
  parts: [
    'file-errors',
    'audit',
    'suggest',
    'pace',
    'service',
    'protocol',
    'errors',
    'auth',
    'heartbeats',
    'engine',
    'plan',
    'schedule',
    'states',
    'history',
    'nodes',
    'notify',
    'outbox',
    'quiet',
    'watching',
    'drill',
    'files',
    'settings',
    'net',
    'system',
    'child',
    'config',
    'reports',
    'store',
    'local',
    'lazy',
    'pace',
  ],
  open: ['parts', 'service', 'errors', 'engine', 'config', 'store', 'local', 'lazy', 'preload'],
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
  monitors: ['io', 'render', 'session'],
  nodes: ['render'],
  drivers: ['io', 'render', 'session'],
  notify: ['io', 'render'],
  quiet: ['render', 'command', 'session'],
  health: ['io', 'render', 'command', 'session'],
  roles: ['io', 'render', 'command', 'settings', 'session'],
  serve: ['io', 'render', 'settings', 'keychain', 'session'],
  'sign-in': ['io', 'settings', 'credentials', 'session'],
  setup: ['io', 'render', 'command', 'settings', 'keychain', 'credentials', 'session', 'drivers'],
  help: ['io', 'render', 'command', 'session', 'accounts', 'heartbeats', 'monitors', 'health', 'roles', 'setup'],
}

/** Packages a folder may import; everything else is a violation. Node's own modules are free. */
const packages: Record<string, readonly string[]> = {
  wire: ['csv-stringify', 'csv-parse'],
  reports: ['csv-stringify'],
  config: ['yaml'],
  profiles: ['yaml'],
  cron: ['croner'],
  kinds: ['basic-ftp', 'jose', 'ldapts', 'mongodb', 'mysql2', 'pg', 'ssh2', 'tedious'],
  drivers: ['mongodb', 'ssh2', 'tedious'],
  database: ['mysql2', 'pg'],
  assert: ['fast-xml-parser', 're2js'],
  system: ['systeminformation'],
  store: ['kysely', 'pg'],
  cli: ['@oclif/core', '@inquirer/input', '@inquirer/password', 'pino', 'sonic-boom'],
  // The process that accesses the keychain.
  main: ['@napi-rs/keyring'],
  commands: ['@oclif/core'],
  auth: ['@zxcvbn-ts/language-common', 'jose'],
  notify: ['nodemailer', 'yaml'],
}

/**
 * Rooms that are a box of tools: their files are imported one by one, so that a kind loads what it uses.
 * Every other folder is entered through its index.ts, and so is every kind by another.
 */
const toolboxes = ['net', 'assert', 'system', 'parts']

/** The folder of a file: `src/core/wire/json.ts` → wire, `src/core/errors.ts` → errors, `src/main.ts` → main. */
function folderOf(file: string): string {
  const parts = relative(src, file).split('/')
  if (parts.length === 1) return 'main'
  if (parts[0] !== 'core') return parts[0] ?? ''
  return (parts[1] ?? '').replace(/\.ts$/, '')
}

/** The folder of a file of the command line: `src/cli/render/list.ts` → render. */
const cliFolderOf = (file: string): string | undefined => /^cli\/([^/]+)(?=\/)/.exec(relative(src, file))?.[1]

/** The kind of a file in a folder of its own: `kinds/redis/resp.ts` → redis. */
const kindOf = (file: string): string | undefined => /^core\/kinds\/([^/]+)\//.exec(relative(src, file))?.[1]

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

/** What an import breaks, in a sentence, or nothing. */
function violation({ from, to, specifier }: Import): string | undefined {
  const folder = folderOf(from)
  const where = relative(src, from)
  if (specifier.startsWith('node:')) return undefined
  if (!specifier.startsWith('.')) {
    const name = specifier.startsWith('@')
      ? specifier.split('/').slice(0, 2).join('/')
      : (specifier.split('/')[0] ?? '')
    return packages[folder]?.includes(name)
      ? undefined
      : `${where}: the folder ${folder} may not import the package ${name}`
  }
  const other = folderOf(to)
  if (
    other === 'kinds' &&
    kindOf(to) !== undefined &&
    kindOf(from) !== kindOf(to) &&
    !/\/(index|\w+-probe|probe)\.ts$/.test(to)
  ) {
    return `${where}: another kind is entered through its index.ts (${specifier})`
  }
  if (folder === 'cli' && other === 'cli') {
    const [here = '', there = ''] = [cliFolderOf(from), cliFolderOf(to)]
    if (here === there || cliLaw[here]?.includes(there)) return undefined
    return `${where}: the folder cli/${here} may not import cli/${there} (${specifier})`
  }
  if (other === folder) return undefined
  if (!law[folder]?.includes(other)) return `${where}: the folder ${folder} may not import ${other} (${specifier})`
  const inside = relative(join(src, 'core', other), to)
  const isCoreFolder = relative(src, to).startsWith('core/') && !to.endsWith(`/core/${other}.ts`) && other !== 'kinds'
  if (isCoreFolder && !toolboxes.includes(other) && inside !== 'index.ts')
    return `${where}: ${other} is entered by its index.ts, not by ${inside}`
  return undefined
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

/** What writes past the one place that knows what to do when a write fails, or ends the process before a write has. */
const direct = /\bstd(?:out|err)\.write\b|\bconsole\.\w|\bprocess\.exit\(/g
const mayWrite: Record<string, readonly string[]> = {
  // Children of svc, whose standard output is a pipe to it.
  'keychain-child.ts': ['stdout.write'],
  'core/child/serve.ts': ['stdout.write'],
  'core/files/serve.ts': ['stdout.write'],
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

/** What a file touches of the process: the names that it uses for it. Texts and comments do not count. */
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

describe('the import law', () => {
  test('each import obeys it', () => {
    expect(imports.length).toBeGreaterThan(100)
    expect(imports.flatMap((edge) => violation(edge) ?? [])).toEqual([])
  })

  test('each file is in a folder that the law names', () => {
    expect(files.filter((file) => !(folderOf(file) in law)).map((file) => relative(src, file))).toEqual([])
    const ofCli = files.filter((file) => folderOf(file) === 'cli')
    const withoutFolder = ofCli.filter((file) => !((cliFolderOf(file) ?? '') in cliLaw))
    expect(withoutFolder.map((file) => relative(src, file))).toEqual([])
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
    ['core/wire/json.ts', "import { x } from '../engine/index.ts'", 'the folder wire may not import engine'],
    ['core/wire/json.ts', "import type { X } from '../../cli/base.ts'", 'the folder wire may not import cli'],
    ['core/server/x.ts', "const x = await import('../store/index.ts')", 'the folder server may not import store'],
    ['core/kinds/x.ts', "import pg from 'express'", 'may not import the package express'],
    ['core/local.ts', "import { x } from './engine/run.ts'", 'engine is entered by its index.ts'],
    ['core/engine/x.ts', "import { x } from '../kinds/tcp.ts'", 'the folder engine may not import kinds'],
    [
      'core/kinds/http-steps/x.ts',
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
    ['core/protocol/x.ts', "export * from '../wire/index.ts'", 'the folder protocol may not import wire'],
    [
      'core/client/x.ts',
      "import {\n  a,\n  b,\n} from '../server/index.ts'",
      'the folder client may not import server',
    ],
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
