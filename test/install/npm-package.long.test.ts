import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import pkg from '../../package.json' with { type: 'json' }
import { runtimePackages } from '../../tools/deb/packages.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { account, root, run } from './installed.ts'

const folder = temporaryFolder()
const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
const npmEnvironment = { ...process.env, PATH: path } as Record<string, string>
const home = join(folder, 'home')
let tarball = ''
let files: readonly string[] = []

beforeAll(() => {
  mkdirSync(home, { mode: 0o700 })
  // Without scripts: `prepare` would build dist anew while other tests run it.
  const packed = run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], npmEnvironment)
  expect(packed.status, packed.stderr).toBe(0)
  tarball = join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
  files = run('tar', ['-tzf', tarball], npmEnvironment)
    .stdout.trim()
    .split('\n')
    .map((name) => name.replace(/^package\//, ''))
})

describe('the npm package', () => {
  test('contains what an installation needs', () => {
    for (const name of [
      'package.json',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'bin/run.js',
      'bin/package.json',
      'dist/main.cjs',
      'dist/drivers.json',
      'dist/licenses.txt',
      'dist/profile-carbon.yaml',
      'dist/schemas/svc.schema.json',
      'deploy/ready.mjs',
      'deploy/systemd/svc.service',
      'deploy/prometheus/svc-rules.yml',
      'deploy/alertmanager/alertmanager.yml',
    ]) {
      expect(files, name).toContain(name)
    }
    for (const target of Object.values(pkg.bin)) expect(files).toContain(target)
  })

  test('contains nothing else: no sources, tests, tools, source maps or packaging of other systems', () => {
    const expected =
      /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|bin\/(?:run\.js|package\.json)|dist\/(?:[\w.-]+\.cjs|licenses\.txt|drivers\.json|profile-[\w-]+\.yaml|man\/man1\/[\w-]+\.1|schemas\/(?:json\/)?[\w-]+\.schema\.json)|deploy\/(?:ready\.mjs|(?:prometheus|alertmanager|systemd|container|github|gitlab)\/[\w.-]+))$/
    expect(files.filter((name) => !expected.test(name))).toEqual([])
  })

  test('the README in it links to files by addresses that exist in the package or in the repository', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    const links = [...readme.matchAll(/\]\(([^)#:]+)[^)]*\)/g)].map(([, link = '']) => link)
    expect(links.length).toBeGreaterThan(3)
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([])
  })

  test('runs in an empty prefix, with nothing but its dependencies beside it', () => {
    const own = join(folder, 'prefix/lib/node_modules', pkg.name)
    mkdirSync(own, { recursive: true })
    run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'], npmEnvironment)
    for (const source of runtimePackages(root, { drivers: false })) {
      const place = relative(root, source)
      // What is inside another package comes with that package.
      if (place.lastIndexOf('node_modules/') > 0) continue
      mkdirSync(dirname(join(own, place)), { recursive: true })
      symlinkSync(source, join(own, place))
    }
    checkInstalled(join(own, 'bin/run.js'))
  })

  test('K19 npm installs it in an empty prefix, as at most 125 packages and 30 MB', { timeout: 240_000 }, () => {
    const prefix = join(folder, 'real')
    const args = ['install', '--global', '--prefer-offline', '--no-audit', '--prefix', prefix, tarball]
    const { status, stderr } = run('npm', args, npmEnvironment, folder)
    expect(status, stderr).toBe(0)
    checkInstalled(join(prefix, 'bin/svc'))
    // In decimal megabytes, as package registries count.
    const installed = readdirSync(prefix, { recursive: true, withFileTypes: true })
    const bytes = installed.reduce(
      (sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0),
      0,
    )
    const manifests = installed.filter(({ name, parentPath }) => name === 'package.json' && isPackage(parentPath))
    expect(manifests.length).toBeLessThanOrEqual(125)
    expect(manifests.length).toBeGreaterThan(20)
    if (process.platform === 'linux' && process.arch === 'x64') expect(bytes).toBeLessThanOrEqual(30_000_000)
  })
})

/** Whether a folder is that of a package: `node_modules/name` or `node_modules/@scope/name`. */
const isPackage = (folder: string): boolean => /node_modules\/(?:@[^/]+\/)?[^/]+$/.test(folder)

/** Help, a check of this machine in depth, and a mistake: these load most of what is packaged. */
function checkInstalled(program: string): void {
  const version = run(program, ['--version'], account(home, path))
  expect(version).toEqual({ status: 0, stdout: `svc ${pkg.version}\n`, stderr: '' })
  const health = run(program, ['health', '--mode', 'Advanced', '--type', 'Sql'], account(home, path))
  expect(health.stdout).toContain('own store')
  expect([0, 3], health.stderr).toContain(health.status)
  expect(run(program, ['health', '--help'], account(home, path)).stdout).toContain('--mode')
  const profiles = run(program, ['monitors', 'profiles'], account(home, path))
  expect(profiles.stdout, profiles.stderr).toContain('file-qc')
  const mistake = run(program, ['helth'], account(home, path))
  expect(mistake.status).toBe(2)
  expect(mistake.stderr).toContain('health')
}
