/**
 * `npm run deb`: a Debian package of the built program, in the working directory or in the folder that is named:
 *
 *     npm run deb [-- --out FOLDER]
 *
 * It contains the Node of the development dependency, the runtime dependencies and all drivers as they are installed, the systemd unit
 * and the guides, and gets its SBOM beside it. It has no maintainer scripts. The same sources and SOURCE_DATE_EPOCH give the same bytes.
 *
 * It also contains the manual pages that `tools/man.ts` writes, and what `svc completion bash|zsh|fish` prints, where
 * the sources have these.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import pkg from '../package.json' with { type: 'json' }
import { commands } from '../src/registry.ts'
import { ar, type Entry, tar } from './deb/archive.ts'
import { changelog, control, copyright, debianArchitecture, debianVersion, maintainer } from './deb/control.ts'
import { runtimePackages } from './deb/packages.ts'
import { sbom } from './sbom.ts'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const { values } = parseArgs({ options: { out: { type: 'string', default: '.' } } })

const seconds = Number(process.env['SOURCE_DATE_EPOCH'] ?? lastCommit() ?? Math.floor(Date.now() / 1000))
const person = maintainer(process.env)
const architecture = debianArchitecture(process.arch)

/** The files of the package by their paths below `/`. Folders follow from them. */
const files = new Map<string, Entry>()
const put = (path: string, content: Buffer | string, mode = 0o644): void => {
  files.set(path, { type: 'file', path, mode, content: Buffer.from(content) })
}
const copy = (path: string, source: string, mode?: number): void => put(path, readFileSync(join(root, source)), mode)
const compressed = (path: string, content: Buffer | string): void => put(`${path}.gz`, gzipSync(content, { level: 9 }))

/** Tests and examples, sources of other languages, source maps, documentation, settings of the packages' own tools. */
const neverLoaded =
  /^(?:tests?|__tests__|examples?|docs|coverage|bench(?:marks?)?)\/|\.(?:map|[cm]?ts|tsx|flow|md|markdown|h|hpp|c|cc|cpp|gyp|gypi|yml|yaml|tsbuildinfo|bnf|html)$|(?:^|\/)(?:\.[^/]+|Makefile|tsconfig[^/]*\.json|gulpfile\.js|AUTHORS|CHANGELOG)$/i

program()
documents()
generated()
write()

function program(): void {
  if (!existsSync(join(root, 'dist/main.cjs'))) throw new Error('dist is missing: run npm run build')
  const node = realpathSync(join(root, 'node_modules/node/bin/node'))
  put('usr/lib/svc/node', readFileSync(node), 0o755)
  // Without its first line: /usr/bin/svc starts it, with the Node of this package and no other.
  put('usr/lib/svc/bin/run.js', readFileSync(join(root, 'bin/run.js'), 'utf8').replace(/^#!.*\n/, ''))
  for (const name of ['bin/package.json', 'package.json', 'deploy/ready.mjs']) {
    copy(`usr/lib/svc/${name}`, name)
  }
  for (const name of readdirSync(join(root, 'dist'))) {
    if (/\.(?:cjs|yaml|txt)$/.test(name)) copy(`usr/lib/svc/dist/${name}`, `dist/${name}`)
  }
  for (const folder of runtimePackages(root, { drivers: true })) {
    const place = relative(root, folder)
    // Type declarations: no program loads them.
    if (place.includes('/@types/')) continue
    for (const name of packageFiles(folder)) copy(`usr/lib/svc/${place}/${name}`, `${place}/${name}`)
  }
  copy('usr/bin/svc', 'deploy/deb/svc', 0o755)
  copy('etc/svc/svc.yaml', 'deploy/deb/svc.yaml')
  copy('usr/lib/systemd/system/svc.service', 'deploy/systemd/svc.service')
  copy('usr/lib/sysusers.d/svc.conf', 'deploy/systemd/svc.sysusers')
}

/** Files of an npm package that a program may load, and its licenses; not the packages inside it. */
function packageFiles(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((name) => !name.startsWith('node_modules/') && !name.startsWith('.'))
    .filter((name) => /licen[cs]e|notice|copying/i.test(name) || !neverLoaded.test(name))
}

function documents(): void {
  const doc = 'usr/share/doc/svc'
  put(`${doc}/copyright`, copyright(readFileSync(join(root, 'LICENSE'), 'utf8')))
  compressed(`${doc}/changelog`, changelog(pkg.version, person, seconds))
  compressed(`${doc}/NEWS`, readFileSync(join(root, 'CHANGELOG.md')))
  const license = ['LICENSE', `node_modules/node-linux-${process.arch}/LICENSE`]
    .map((name) => join(root, 'node_modules/node', name))
    .find((path) => existsSync(path))
  if (license === undefined) throw new Error('the license of Node.js is not installed')
  compressed(`${doc}/node-license.txt`, readFileSync(license))
  const paths = ['for-operators', 'for-pipelines', 'for-administrators', 'testing-alarms']
  for (const name of ['install', ...paths, 'svc.yaml', 'serve', 'sign-in', 'agents', 'metrics']) {
    copy(`${doc}/${name}.md`, `docs/${name}.md`)
  }
  for (const name of readdirSync(join(root, 'deploy/prometheus'))) {
    copy(`${doc}/examples/prometheus/${name}`, `deploy/prometheus/${name}`)
  }
  copy('usr/share/lintian/overrides/svc', 'deploy/deb/lintian-overrides')
}

function generated(): void {
  execFileSync(process.execPath, [join(root, 'tools/schemas.ts')], { stdio: 'ignore' })
  for (const name of readdirSync(join(root, 'dist/schemas'), { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.json')) copy(`usr/lib/svc/dist/schemas/${name}`, `dist/schemas/${name}`)
  }
  if (existsSync(join(root, 'tools/man.ts'))) {
    const pages = mkdtempSync(join(tmpdir(), 'svc-man-'))
    execFileSync(process.execPath, [join(root, 'tools/man.ts'), '--into', pages], { stdio: 'ignore' })
    for (const name of readdirSync(join(pages, 'man1'))) {
      compressed(`usr/share/man/man1/${name}`, readFileSync(join(pages, 'man1', name)))
    }
    rmSync(pages, { recursive: true, force: true })
  }
  if (!Object.keys(commands).includes('completion')) return
  const places = {
    bash: 'usr/share/bash-completion/completions/svc',
    zsh: 'usr/share/zsh/vendor-completions/_svc',
    fish: 'usr/share/fish/vendor_completions.d/svc.fish',
  }
  for (const [shell, path] of Object.entries(places)) {
    put(path, execFileSync(process.execPath, [join(root, 'bin/run.js'), 'completion', shell]))
  }
}

function write(): void {
  const entries = withFolders()
  const regular = entries.filter((entry) => entry.type === 'file')
  const sums = regular
    .filter(({ path }) => !path.startsWith('etc/'))
    .map(({ path, content }) => `${createHash('md5').update(content).digest('hex')}  ${path}\n`)
  const installedKiB = entries.reduce(
    (total, entry) => total + (entry.type === 'file' ? Math.ceil(entry.content.length / 1024) : 1),
    0,
  )
  const about = {
    conffiles: regular.filter(({ path }) => path.startsWith('etc/')).map(({ path }) => `/${path}\n`),
    control: [control({ version: pkg.version, architecture, maintainer: person, installedKiB })],
    md5sums: sums,
  }
  const controlEntries = Object.entries(about).map(
    ([path, lines]): Entry => ({ type: 'file', path, mode: 0o644, content: Buffer.from(lines.join('')) }),
  )
  const content = ar(
    [
      ['debian-binary', Buffer.from('2.0\n')],
      ['control.tar.gz', gzipSync(tar(controlEntries, seconds), { level: 9 })],
      ['data.tar.gz', gzipSync(tar(entries, seconds))],
    ],
    seconds,
  )
  mkdirSync(values.out, { recursive: true })
  const file = join(values.out, `svc_${debianVersion(pkg.version)}_${architecture}.deb`)
  writeFileSync(file, content)
  writeFileSync(file.replace(/\.deb$/, '.cdx.json'), sbom({ drivers: true }))
  process.stdout.write(`${file}\n`)
}

/** All entries sorted, each folder before what is in it. */
function withFolders(): readonly Entry[] {
  const folders = new Map<string, Entry>([['.', { type: 'directory', path: '.', mode: 0o755 }]])
  for (const path of files.keys()) {
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
      const folder = path.slice(0, at)
      folders.set(folder, { type: 'directory', path: folder, mode: 0o755 })
    }
  }
  return [...folders.values(), ...files.values()].toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

/** When the sources were committed last, in seconds since 1970: undefined outside a clone. */
function lastCommit(): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', root, 'log', '-1', '--format=%ct'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}
