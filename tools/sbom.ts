/**
 * The SBOM (CycloneDX, by npm's own command) of what is shipped, beside the package: `npm pack` and `npm run deb` write it.
 *
 *     npm run sbom [-- --out FOLDER]
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pkg from '../package.json' with { type: 'json' }
import { lockedPackages } from './driver-locks.ts'

/**
 * In the bundle, so that they are shipped although npm does not install them: what commands load at their start, as
 * hundreds of files. They are development dependencies.
 */
export const bundled = ['@oclif/core', 'kysely', 'yaml'] as const

/** The SBOM of the npm package, or with `drivers` of the Debian package. Its time and number are those of this run. */
export function sbom({ drivers }: { readonly drivers: boolean }): string {
  const { name, version, license, description, devDependencies, peerDependencies } = pkg
  const more = Object.fromEntries(bundled.map((one) => [one, devDependencies[one]]))
  const dependencies = { ...pkg.dependencies, ...more, ...(drivers ? peerDependencies : {}) }
  const about = { name, version, license, description, dependencies }
  const packages = { '': about, ...lockedPackages(Object.keys(dependencies)) }
  const folder = mkdtempSync(join(tmpdir(), 'svc-sbom-'))
  try {
    // npm takes the name of the folder as that of the component.
    const project = join(folder, 'svc')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), JSON.stringify(about))
    const lock = { name, version, lockfileVersion: 3, requires: true, packages }
    writeFileSync(join(project, 'package-lock.json'), JSON.stringify(lock))
    const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only']
    return execFileSync('npm', args, {
      cwd: project,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      shell: process.platform === 'win32',
      env: { ...process.env, npm_config_local_prefix: undefined, npm_config_global: undefined },
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { out: { type: 'string' } } })
  const out = values.out ?? (process.env['npm_config_pack_destination'] || '.')
  const file = join(out, `svc-cli-svc-${pkg.version}.cdx.json`)
  writeFileSync(file, sbom({ drivers: false }))
  process.stderr.write(`${file}\n`)
}
