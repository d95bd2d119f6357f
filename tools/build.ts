/**
 * Bundles src/ into dist/: CommonJS in split chunks, one entry a command, because the ESM loader and
 * hundreds of small files cost more at every start than all of svc's own code. Drivers and the HTTP
 * server stay in node_modules and are loaded when they are due.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import pkg from '../package.json' with { type: 'json' }
import { driverNames, drivers } from '../src/core/checks/drivers/index.ts'
import { installation } from './driver-locks.ts'
import { compiledEagerly } from './eager.ts'
import { type FunctionRange, functionsRun, rangeOf } from './files-run.ts'
import { bundled } from './sbom.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** All others go into the bundle. */
const external = Object.keys(pkg.dependencies)

/**
 * Packages that oclif loads at every start and svc never uses: its search for plugins and commands on disk.
 * Together they cost a third of the start-up.
 */
const unused = ['tinyglobby', 'lilconfig', 'minimatch', 'typescript', 'wsl-utils']
const stub = (name: string): string => `${root}tools/stubs/${name}.cjs`

/** Parts of Node that take up to 8 ms to load, and of which most commands use nothing. */
const dear = [
  'node:crypto',
  'node:fs/promises',
  'node:dns/promises',
  'node:net',
  'node:perf_hooks',
  'node:timers/promises',
]

/** The code of a chunk, which loads such a part when it first uses it. rolldown writes `node_crypto.hash` for `hash`. */
function loadedOnUse(code: string): string {
  // The same clock from another zero, without node:perf_hooks, which the global `performance` loads.
  let lazy = code.replaceAll(/\b(?:node_perf_hooks\.)?performance\.now\(\)/g, '(process.uptime()*1e3)')
  for (const name of dear) {
    const variable = name.replace(/\W/g, '_')
    if (!lazy.includes(`${variable}=require("${name}")`)) continue
    lazy = lazy
      .replace(
        `${variable}=require("${name}")`,
        `${variable}$loaded,${variable}=()=>${variable}$loaded??=process.getBuiltinModule("${name}")`,
      )
      // Without the brackets, `new` would belong to the function that loads.
      .replaceAll(new RegExp(`\\bnew ${variable}\\.(\\w+)`, 'g'), `new (${variable}().$1)`)
      .replaceAll(`${variable}.`, `${variable}().`)
    const other = new RegExp(`\\b${variable}(?!\\(\\)\\.|=\\(\\)=>|\\$loaded)`).exec(lazy)
    if (other) throw new Error(`a chunk uses ${name} in another form: ${lazy.substr(other.index, 60)}`)
  }
  return lazy
}

/**
 * Exports as plain properties, once they are complete: V8 makes accessors slowly, and calls one at each use. No module of
 * svc assigns to a variable that it exports. The object has no prototype: V8 keeps such a one as a table, and describes
 * the shape of any other anew with each of its hundreds of properties.
 */
const plainExports = (code: string): string =>
  `exports=module.exports=Object.create(null);${withoutRuntime(code).replaceAll(
    /Object\.defineProperty\(exports,"([\w$]+)",\{enumerable:!0,get:function\(\)\{return ?([^{}]+)\}\}\)/g,
    'exports.$1=$2',
  )}`

/**
 * The objects that `import()` of a module of the chunk gives, as literals: rolldown calls a function of its runtime for
 * each, and the runtime is a file of its own. What else needs the runtime gets it on use.
 */
function withoutRuntime(code: string): string {
  const [, runtime] = /\brequire_rolldown_runtime=(require\("[^"]+"\))/.exec(code) ?? []
  if (runtime === undefined) return code
  return code
    .replace(`const require_rolldown_runtime=${runtime};`, '')
    .replace(`require_rolldown_runtime=${runtime},`, '')
    .replaceAll(/require_rolldown_runtime\.n\(\{([^{}]*)\}\)/g, (_, members: string) => {
      const getters = members.replaceAll(/([\w$]+):\(\)=>([\w$.]+)/g, 'get $1(){return $2}')
      if (getters.includes('=>')) throw new Error(`a chunk gives a member in another form: ${getters.slice(0, 200)}`)
      return `{${getters}}`
    })
    .replaceAll('require_rolldown_runtime.', `${runtime}.`)
}

/**
 * The functions that usual commands run, by the path of their chunk: health checks in process and at a
 * server, and questions about users. The commands run from the bundle, in a home folder of their own.
 */
async function functionsOfCommands(): Promise<ReadonlyMap<string, ReadonlySet<FunctionRange>>> {
  const home = mkdtempSync(join(tmpdir(), 'svc-build-'))
  const portFile = join(home, 'port')
  const program = join(root, 'bin/run.js')
  const serve = [program, 'serve', '--port', '0', '--port-file', portFile, '--store', join(home, 'serve.db')]
  const env = { PATH: process.env['PATH'], HOME: home, SVC_HOME: home }
  const server = spawn(process.execPath, serve, { env, stdio: 'ignore' })
  const exited = once(server, 'exit')
  let isRunning = true
  void exited.then(() => {
    isRunning = false
  })
  try {
    while (!(existsSync(portFile) && readFileSync(portFile, 'utf8'))) {
      if (!isRunning) throw new Error('svc serve of this build has ended before it listened')
      await pause(20)
    }
    const url = `http://127.0.0.1:${readFileSync(portFile, 'utf8').trim()}`
    const config = join(home, 'monitors.yaml')
    writeFileSync(config, `types: {App: [{kind: http, url: '${url}/livez'}]}`, { mode: 0o600 })
    const functions = new Map<string, ReadonlySet<FunctionRange>>()
    for (const command of [
      ['health', '-m', 'Basic', '-t', 'Sql'],
      ['health', '-m', 'Basic', '-t', 'App'],
      ['health', '-m', 'Basic', '-t', 'App', '--config', config],
      ['health', '-m', 'Basic', '-t', 'App', '--server', url],
      ['users', 'list'],
      ['roles', 'show', 'nobody'],
    ]) {
      const run = functionsRun([program, ...command], home)
      // 3: unhealthy; 9: no such user.
      if (![0, 3, 9].includes(run.exitCode ?? -1))
        throw new Error(`svc ${command.join(' ')} ended with ${run.exitCode}`)
      for (const [path, ranges] of run.functions)
        functions.set(path, new Set([...ranges, ...(functions.get(path) ?? [])]))
    }
    return functions
  } finally {
    server.kill('SIGTERM')
    await exited
    rmSync(home, { recursive: true, force: true })
  }
}

/**
 * The code in ASCII: V8 keeps the text of a chunk as long as its functions, with two bytes for each character where one
 * of them needs two.
 */
const inAscii = (code: string): string =>
  code.replaceAll(/[\u0080-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The folder of the package that a module belongs to. Undefined for our own. */
const packageOf = (id: string): string | undefined => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)?.[0]

/** The name, version and license of a package, with the text of the license where the package contains it. */
function notice(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Record<
    string,
    string
  >
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file))
  return [`${name} ${version} (${license})`, ...files.map((file) => readFileSync(`${folder}/${file}`, 'utf8').trim())]
    .join('\n\n')
    .concat('\n')
}

/** Whether a module belongs to a package, by its path. */
const inPackage = (name: string) => (id: string) => packageOf(id) === join(root, 'node_modules', name)

/** Whether a module is one of these, by its path. */
const modules = (...names: readonly string[]) => {
  const ids = names.map((name) => (name.startsWith('\0') ? name : `${root}${name}`))
  return (id: string): boolean => ids.includes(id)
}

// What else is generated stays: manual pages and schemas, which only a change of declarations alters.
for (const name of existsSync(`${root}dist`) ? readdirSync(`${root}dist`) : []) {
  if (!['man', 'schemas'].includes(name)) rmSync(`${root}dist/${name}`, { recursive: true, force: true })
}
const bundle = await rolldown({
  cwd: root,
  input: {
    main: 'src/main.ts',
    'probe-child': 'src/core/checks/child/child-main.ts',
    'file-reader': 'src/core/base/files/reader-main.ts',
    'password-hash': 'src/core/accounts/auth/hash-main.ts',
    'keychain-child': 'src/keychain-child.ts',
  },
  platform: 'node',
  resolve: {
    alias: { ...Object.fromEntries(unused.map((name) => [name, stub('unused')])), debug: stub('silent-debug') },
  },
  external: (id) => external.some((name) => id === name || id.startsWith(`${name}/`)),
  treeshake: { moduleSideEffects: [{ test: /[\\/]src[\\/]core[\\/]checks[\\/]database[\\/]/, sideEffects: false }] },
  logLevel: 'warn',
  // Modules in one group are loaded together on purpose.
  checks: { ineffectiveDynamicImport: false },
})
const { output } = await bundle.write({
  dir: 'dist',
  format: 'cjs',
  entryFileNames: '[name].cjs',
  // Flat: a module that looks for a file beside itself finds it from any chunk.
  chunkFileNames: '[name]-[hash].cjs',
  codeSplitting: {
    // Finding and opening a file costs as much as what is in it, so what is loaded together lies together: each
    // group takes these modules and what they import, as far as no group before it has taken it.
    // What the name of a group begins with is no name of a module, after which all other chunks are named.
    groups: [
      { name: 'eager-start', test: modules('src/main.ts', 'src/cli/io/process.ts') },
      // Apart from the core: a command line that needs no oclif must not load it with another module.
      ...bundled.flatMap((name) => (name === '@oclif/core' ? [] : [{ name, test: inPackage(name) }])),
      { name: 'oclif', test: /[\\/]node_modules[\\/]/ },
      {
        name: 'eager-command',
        test: modules(
          'src/cli/command/base.ts',
          'src/commands/health.ts',
          'src/core/base/json.ts',
          'src/core/base/loopback.ts',
        ),
      },
      // Apart from what a health check in process runs through, which a command with a server does not load.
      {
        name: 'eager-settings',
        test: modules(
          'src/cli/settings/profiles.ts',
          'src/cli/settings/private-file.ts',
          'src/core/base/files/index.ts',
        ),
      },
      { name: 'eager-screen', test: modules('src/cli/render/table.ts', 'src/cli/health/screen.ts') },
      {
        name: 'eager-local',
        test: modules(
          'src/core/service/open.ts',
          'src/core/checks/kinds/index.ts',
          'src/core/checks/kinds/configuration.ts',
          'src/core/checks/kinds/host.ts',
          'src/core/base/net/http/coding.ts',
          'src/core/config/index.ts',
          'src/core/store/index.ts',
        ),
      },
      { name: 'queries', test: modules('src/core/checks/database/queries.ts', 'src/core/checks/database/session.ts') },
      // What most kinds of monitors with a connection load, and what those load that send HTTP requests.
      {
        name: 'eager-network',
        test: modules(
          'src/core/base/net/json.ts',
          'src/core/base/net/tls-connect.ts',
          'src/core/checks/assert/nonce.ts',
          'src/core/checks/assert/xml.ts',
          'src/core/checks/recognition/index.ts',
        ),
      },
      { name: 'eager-http', test: modules('src/core/checks/kinds/http/index.ts') },
      { name: 'sqlite', test: modules('src/core/checks/kinds/sqlite/index.ts') },
      { name: 'eager-client', test: modules('src/core/client/index.ts') },
      {
        name: 'eager-answer',
        test: modules('src/core/protocol/wire/index.ts', 'src/core/checks/reports/index.ts'),
      },
    ],
  },
  minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
  exports: 'named',
})
await bundle.close()

// The built-in profiles are read at run time.
for (const file of readdirSync(`${root}src/core/checks/profiles`)) {
  if (file.endsWith('.yaml')) copyFileSync(`${root}src/core/checks/profiles/${file}`, `${root}dist/profile-${file}`)
}

// What `svc drivers add` installs: the versions that the tests ran with.
const shipped = driverNames.map((name) => [name, installation(name, drivers[name])])
writeFileSync(`${root}dist/drivers.json`, JSON.stringify(Object.fromEntries(shipped)))

for (const file of output) {
  if (file.type !== 'chunk') continue
  const path = `${root}dist/${file.fileName}`
  const code = inAscii(loadedOnUse(readFileSync(path, 'utf8')))
  writeFileSync(path, file.moduleIds.some((id) => packageOf(id)) ? code : plainExports(code))
}
// The chunk of the start takes the place of the entry, a file that would only load it.
const chunks = output.filter((file) => file.type === 'chunk')
const start = chunks.find(({ name }) => name === 'eager-start')
if (!start) throw new Error('the bundle has no chunk of the start')
const entry = `${root}dist/main.cjs`
const entryExports = readFileSync(entry, 'utf8').match(/exports\.\w+=require_eager_start\.\w+/g) ?? []
for (const { fileName } of chunks) {
  const path = `${root}dist/${fileName}`
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`./${start.fileName}`, './main.cjs'))
}
if (entryExports.length === 0) throw new Error('the entry exports nothing')
const ofEntry = entryExports.map((line) => line.replace('require_eager_start', 'exports'))
writeFileSync(entry, `${readFileSync(`${root}dist/${start.fileName}`, 'utf8')};${ofEntry.join(';')}`)
rmSync(`${root}dist/${start.fileName}`)

for (const [path, ranges] of await functionsOfCommands()) {
  if (!path.startsWith(join(root, 'dist'))) continue
  const code = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    compiledEagerly(code, (start, end) => ranges.has(rangeOf(start, end))),
  )
}

// Whoever passes the bundle on passes on these packages, whose licenses require their text beside them.
const shippedPackages = new Set(
  output.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : [])).flatMap((id) => packageOf(id) ?? []),
)
const notices = [...shippedPackages].sort().map(notice)
writeFileSync(`${root}dist/licenses.txt`, notices.join(`\n${'-'.repeat(80)}\n\n`))

// Which modules each chunk holds: the start-up test pins what a command loads by their names.
const contents = chunks.flatMap((file) =>
  file.fileName === 'main.cjs'
    ? []
    : [
        [
          file === start ? 'main.cjs' : file.fileName,
          file.moduleIds.map((id) => id.replace(root, '').replace(/^\0.*/, '')),
        ],
      ],
)
writeFileSync(`${root}dist/modules.json`, JSON.stringify(Object.fromEntries(contents), null, 1))
