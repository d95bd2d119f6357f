import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import pkg from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }
import { driverNames, drivers } from '../../src/core/checks/drivers/index.ts'
import { installation } from '../../tools/driver-locks.ts'
import { sbom } from '../../tools/sbom.ts'

type Bom = {
  readonly bomFormat: string
  readonly components: readonly { readonly name: string; readonly purl: string }[]
}

test('K19 npm installs no driver, and the tests run with the versions that svc drivers add installs', () => {
  for (const name of Object.values(drivers)) {
    expect(Object.keys(pkg.dependencies)).not.toContain(name)
    expect(pkg).not.toHaveProperty('optionalDependencies')
    expect(pkg.peerDependenciesMeta).toHaveProperty(name, { optional: true })
  }
})

test.each(driverNames)('K19 the files for the driver %s have a hash for each package, and name no registry', (name) => {
  const { version, files } = installation(name, drivers[name])
  const { packages } = JSON.parse(files['package-lock.json']) as typeof lock
  const places = Object.entries(packages).filter(([place]) => place !== '')
  expect(places.length).toBeGreaterThan(1)
  for (const [place, entry] of places) {
    expect(entry, place).toHaveProperty('integrity', expect.stringMatching(/^sha512-/))
    expect(entry, place).not.toHaveProperty('dev')
  }
  expect(files['package-lock.json']).not.toMatch(/https?:|"resolved"/)
  expect(lock.packages).toHaveProperty([`node_modules/${drivers[name]}`, 'version'], version)
  expect(JSON.parse(files['package.json'])).toMatchObject({ dependencies: { [drivers[name]]: version } })
})

test('a package without a hash in package-lock.json is refused', () => {
  expect(() => installation('sftp', 'ssh2', { 'node_modules/ssh2': { version: '1.0.0' } })).toThrow('has no hash')
})

const modules = JSON.parse(readFileSync(new URL('../../dist/modules.json', import.meta.url), 'utf8')) as Record<
  string,
  string[]
>

test('the SBOM lists what is shipped, with the drivers in the Debian package only', () => {
  const [npm, debian] = [false, true].map((each) => JSON.parse(sbom({ drivers: each })) as Bom)
  const names = (bom: Bom | undefined) => bom?.components.map(({ name }) => name) ?? []
  expect([npm?.bomFormat, debian?.bomFormat]).toEqual(['CycloneDX', 'CycloneDX'])
  // Also every package in the bundle, which npm does not install.
  const inBundle = Object.values(modules).flatMap((paths) =>
    paths.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []),
  )
  expect(inBundle).toEqual(expect.arrayContaining(['@oclif/core', 'kysely', 'yaml']))
  const licenses = readFileSync(new URL('../../dist/licenses.txt', import.meta.url), 'utf8')
  for (const name of inBundle) expect(licenses, name).toMatch(new RegExp(`^${name} \\d`, 'm'))
  for (const name of [...Object.keys(pkg.dependencies), ...inBundle]) {
    expect(names(npm), name).toContain(name)
    expect(names(debian), name).toContain(name)
  }
  for (const name of Object.values(drivers)) {
    expect(names(npm)).not.toContain(name)
    expect(names(debian)).toContain(name)
  }
  expect(names(debian)).not.toContain('vitest')
})
