import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import pkg from '../../package.json' with { type: 'json' }
import { commands } from '../../src/registry.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { account, isInstalled, root, run } from './installed.ts'

const environment = { ...process.env, SOURCE_DATE_EPOCH: '1700000000' } as Record<string, string>
const missing = process.platform !== 'linux' || !isInstalled('dpkg') ? 'dpkg is not installed' : undefined

peerSuite(missing, 'the Debian package', () => {
  const folder = temporaryFolder()
  const system = join(folder, 'system')
  const home = join(folder, 'home')
  const svc = join(system, 'usr/bin/svc')
  let file = ''

  const build = (name: string): string => {
    const { status, stdout, stderr } = run(process.execPath, ['tools/deb.ts', '--out', join(folder, name)], environment)
    expect(status, stderr).toBe(0)
    return stdout.trim()
  }
  const dpkg = (...args: string[]) =>
    run('dpkg', [`--root=${system}`, '--force-not-root', '--force-script-chrootless', '--force-depends', ...args], {
      ...environment,
      LC_ALL: 'C',
    })

  beforeAll(() => {
    file = build('first')
    for (const name of ['info', 'updates', 'triggers']) {
      mkdirSync(join(system, 'var/lib/dpkg', name), { recursive: true })
    }
    writeFileSync(join(system, 'var/lib/dpkg/status'), '')
    mkdirSync(home, { mode: 0o700 })
    const { status, stderr } = dpkg('--install', file)
    expect(status, stderr).toBe(0)
  }, 240_000)

  test('is installed by dpkg as svc, in the version of package.json', () => {
    const { stdout } = dpkg('--status', 'svc')
    expect(stdout).toContain(`Status: install ok installed\n`)
    expect(stdout).toContain(`Version: ${pkg.version}\n`)
  })

  test('runs on its own Node, without any other on the machine', () => {
    expect(run(svc, ['--version'], account(home))).toEqual({ status: 0, stdout: `svc ${pkg.version}\n`, stderr: '' })
    const about = run(svc, ['version', '--json'], account(home))
    expect(about.stdout).toContain(process.versions.node)
  })

  test('checks this machine and the embedded store in depth', () => {
    const { status, stdout, stderr } = run(svc, ['health', '--mode', 'Advanced', '--type', 'Sql'], account(home))
    expect([0, 3], stderr).toContain(status)
    expect(stdout).toContain('own store')
  })

  test('contains the built-in profiles', () => {
    const { stdout, stderr } = run(svc, ['monitors', 'profiles'], account(home))
    expect(stdout, stderr).toContain('file-qc')
  })

  test('contains the drivers that a configuration may need', () => {
    const config = join(folder, 'drivers.yaml')
    const closed = 'host: 127.0.0.1, port: 1'
    writeFileSync(
      config,
      `types:
  Sql:
    - {kind: postgres, name: a, url: 'postgres://u@127.0.0.1:1/d'}
    - {kind: mysql, name: b, url: 'mysql://u@127.0.0.1:1/d'}
    - {kind: sqlserver, name: c, url: 'sqlserver://u@127.0.0.1:1/d', password: {env: HOME}}
    - {kind: redis, name: d, url: 'redis://127.0.0.1:1'}
    - {kind: mongo, name: e, url: 'mongodb://127.0.0.1:1'}
    - {kind: sftp, name: f, ${closed}, username: u, password: {env: HOME}}
    - {kind: ftp, name: g, ${closed}}
    - {kind: ldap, name: h, url: 'ldap://127.0.0.1:1'}
`,
      { mode: 0o600 },
    )
    const { status, stdout, stderr } = run(
      svc,
      ['health', '--type', 'Sql', '--json', '--config', config],
      account(home),
    )
    expect(status, stderr).toBe(3)
    // Each driver was loaded and found nobody: a driver that is missing is another fault.
    expect(stdout.match(/"fault: \w+/g)).toEqual(Array(8).fill('"fault: refused'))
  })

  test('has an SBOM beside it, which lists the drivers', () => {
    const bom = readFileSync(file.replace(/\.deb$/, '.cdx.json'), 'utf8')
    for (const name of Object.keys(pkg.peerDependencies)) expect(bom).toContain(`"name": "${name}"`)
  })

  test('has no maintainer scripts, and checksums that dpkg verifies', () => {
    const members = run('dpkg-deb', ['--ctrl-tarfile', file], environment)
    expect(members.status).toBe(0)
    const scripts = ['preinst', 'postinst', 'prerm', 'postrm', 'config', 'triggers']
    for (const name of scripts) expect(existsSync(join(system, `var/lib/dpkg/info/svc.${name}`)), name).toBe(false)
    expect(dpkg('--verify', 'svc')).toEqual({ status: 0, stdout: '', stderr: '' })
    const sums = readFileSync(join(system, 'var/lib/dpkg/info/svc.md5sums'), 'utf8')
    const node = readFileSync(join(system, 'usr/lib/svc/node'))
    expect(sums).toContain(`${createHash('md5').update(node).digest('hex')}  usr/lib/svc/node\n`)
  })

  test('the same sources and SOURCE_DATE_EPOCH give the same bytes', () => {
    expect(readFileSync(build('second')).equals(readFileSync(file))).toBe(true)
  }, 240_000)

  test('nothing in it can be written by anyone but root', () => {
    const { stdout } = run('dpkg-deb', ['--contents', file], environment)
    const lines = stdout.trim().split('\n')
    expect(lines.length).toBeGreaterThan(1_000)
    expect(lines.filter((line) => !/^(?:drwxr-xr-x|-rwxr-xr-x|-rw-r--r--) root\/root /.test(line))).toEqual([])
  })

  test('the configuration that it installs is a conffile, has nothing to run, and an upgrade keeps changes', () => {
    const config = join(system, 'etc/svc/svc.yaml')
    expect(readFileSync(join(system, 'var/lib/dpkg/info/svc.conffiles'), 'utf8')).toBe('/etc/svc/svc.yaml\n')
    const lines = readFileSync(config, 'utf8').split('\n')
    expect(lines.filter((line) => line !== '' && !line.startsWith('#'))).toEqual([])
    const changed = 'types:\n  App:\n    - {kind: tcp, name: shop, host: 127.0.0.1, port: 1}\n'
    writeFileSync(config, changed)
    expect(dpkg('--force-confold', '--install', file).status).toBe(0)
    expect(readFileSync(config, 'utf8')).toBe(changed)
  })

  test('the example in the configuration is valid once its comment signs are removed', () => {
    const config = join(folder, 'example.yaml')
    const example = readFileSync(join(root, 'deploy/deb/svc.yaml'), 'utf8')
    const [, types = ''] = example.split(/\n\n(?=# types:)/)
    writeFileSync(config, types.replaceAll(/^# ?/gm, ''), { mode: 0o600 })
    const { status, stdout, stderr } = run(svc, ['monitors', 'validate', '--config', config], account(home))
    expect(status, stdout + stderr).toBe(0)
  })

  test('systemd-sysusers creates the account of the service, without a shell', ({ skip }) => {
    if (!isInstalled('systemd-sysusers')) skip('systemd-sysusers is not installed')
    const { status, stderr } = run('systemd-sysusers', [`--root=${system}`], environment)
    expect(status, stderr).toBe(0)
    expect(readFileSync(join(system, 'etc/passwd'), 'utf8')).toMatch(
      /^svc:x:\d+:\d+:svc serve:\/var\/lib\/svc:\/usr\/sbin\/nologin$/m,
    )
  })

  test('systemd-analyze verifies the unit as installed, and rates its exposure below 2.5', ({ skip }) => {
    if (!isInstalled('systemd-analyze')) skip('systemd-analyze is not installed')
    // The units that it refers to, such as sysinit.target.
    cpSync('/usr/lib/systemd', join(system, 'lib/systemd'), { recursive: true, verbatimSymlinks: true })
    // The program of ExecReload, which belongs to another package.
    cpSync('/bin/kill', join(system, 'bin/kill'))
    const verified = run('systemd-analyze', ['verify', `--root=${system}`, 'svc.service'], environment)
    expect(verified).toEqual({ status: 0, stdout: '', stderr: '' })
    const args = ['security', '--offline=true', '--threshold=25', `--root=${system}`, 'svc.service']
    const { status, stdout } = run('systemd-analyze', args, { ...environment, LC_ALL: 'C' })
    expect(status, stdout).toBe(0)
    expect(stdout).toContain('Overall exposure level')
  })

  test('lintian finds nothing but what the overrides explain', ({ skip }) => {
    if (!isInstalled('lintian')) skip('lintian is not installed')
    const pages = existsSync(join(root, 'tools/man.ts')) ? [] : ['--suppress-tags', 'no-manual-page']
    const { status, stdout } = run('lintian', ['--fail-on', 'error,warning', ...pages, file], environment)
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  }, 240_000)

  test('man pages and completions are packaged where the build has them', () => {
    const completions = [
      'usr/share/bash-completion/completions/svc',
      'usr/share/zsh/vendor-completions/_svc',
      'usr/share/fish/vendor_completions.d/svc.fish',
    ]
    const expected = Object.keys(commands).includes('completion')
    for (const path of completions) expect(existsSync(join(system, path)), path).toBe(expected)
    expect(existsSync(join(system, 'usr/share/man/man1/svc.1.gz'))).toBe(existsSync(join(root, 'tools/man.ts')))
  })

  test('what Debian requires of every package is in its documentation folder', () => {
    const doc = join(system, 'usr/share/doc/svc')
    expect(readFileSync(join(doc, 'copyright'), 'utf8')).toContain('License: Expat')
    for (const name of ['changelog.gz', 'NEWS.gz', 'node-license.txt.gz', 'install.md', 'svc.yaml.md']) {
      expect(statSync(join(doc, name)).size, name).toBeGreaterThan(100)
    }
  })

  test('dpkg removes all of it, and purge also the configuration', () => {
    expect(dpkg('--remove', 'svc').status).toBe(0)
    expect(existsSync(join(system, 'usr/lib/svc'))).toBe(false)
    expect(existsSync(join(system, 'etc/svc/svc.yaml'))).toBe(true)
    expect(dpkg('--purge', 'svc').status).toBe(0)
    expect(existsSync(join(system, 'etc/svc'))).toBe(false)
  })
})
