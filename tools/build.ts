/**
 * Bundles src/ into dist/: CommonJS in split chunks, one entry a command, because the ESM loader and
 * hundreds of small files cost more at every start than all of svc's own code. Drivers and the HTTP
 * server stay in node_modules and are loaded when they are due.
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import pkg from '../package.json' with { type: 'json' }
import { driverNames, drivers } from '../src/core/checks/drivers/index.ts'
import { installation } from './driver-locks.ts'
import { compiledEagerly } from './eager.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
/** All others go into the bundle: @oclif/core, which every command loads, is a development dependency. */
const external = Object.keys(pkg.dependencies)

/**
 * Packages that oclif loads at every start and svc never uses: its search for plugins and commands on disk.
 * Together they cost a third of the start-up.
 */
const unused = ['tinyglobby', 'lilconfig', 'minimatch', 'typescript', 'wsl-utils']
const stub = (name: string): string => `${root}tools/stubs/${name}.cjs`

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
    'keychain-child': 'src/keychain-child.ts',
  },
  platform: 'node',
  resolve: {
    alias: { ...Object.fromEntries(unused.map((name) => [name, stub('unused')])), debug: stub('silent-debug') },
  },
  external: (id) => external.some((name) => id === name || id.startsWith(`${name}/`)),
  logLevel: 'warn',
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
      { name: 'eager-start', test: modules('src/cli/io/process.ts', '\0rolldown/runtime.js') },
      // Apart from the core: a command line that needs no oclif must not load it with another module.
      { name: 'oclif', test: /[\\/]node_modules[\\/]/ },
      {
        name: 'eager-command',
        test: modules('src/cli/command/base.ts', 'src/commands/health.ts', 'src/core/base/loopback.ts'),
      },
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

// The chunks of a health check at a server, which is asked for every few seconds: most of their functions are called.
for (const file of output) {
  if (file.type !== 'chunk' || !file.name.startsWith('eager-')) continue
  const path = `${root}dist/${file.fileName}`
  writeFileSync(path, compiledEagerly(readFileSync(path, 'utf8')))
}

// Which modules each chunk holds: the start-up test pins what a command loads by their names.
const contents = output.flatMap((file) =>
  file.type === 'chunk' ? [[file.fileName, file.moduleIds.map((id) => id.replace(root, '').replace(/^\0.*/, ''))]] : [],
)
writeFileSync(`${root}dist/modules.json`, JSON.stringify(Object.fromEntries(contents), null, 1))
