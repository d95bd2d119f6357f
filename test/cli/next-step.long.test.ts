import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isInstalled } from '../install/installed.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const home = temporaryHome()

const canMount =
  isInstalled('unshare') && spawnSync('unshare', ['-m', '-n', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0

suiteWith(canMount ? undefined : 'mounting a file system needs root', 'a file system that takes no more', () => {
  const folder = temporaryFolder()
  const place = join(folder, 'home')
  mkdirSync(place)

  /** Runs svc with its settings on a new file system, which nobody else sees, and where no port is open. */
  const onFileSystem = (options: string, fill: string, args: readonly string[]) => {
    const script = `mount -t tmpfs -o ${options} tmpfs "$PLACE" && { ${fill}; } 2>/dev/null; exec "$@"`
    const { status, stderr } = spawnSync(
      'unshare',
      ['-m', '-n', 'sh', '-c', script, 'sh', process.execPath, home.program, ...args],
      { env: { ...home.env, PLACE: place, HOME: place, SVC_HOME: join(place, 'svc') }, encoding: 'utf8' },
    )
    return { status, stderr }
  }

  const commands = [
    ['init', '--yes'],
    ['monitors', 'discover', '--write'],
    ['profile', 'add', 'prod', '--server', 'https://svc.example.com'],
    ['config', 'set', 'credentials', 'always'],
    ['users', 'add', 'alice', '--no-password'],
  ]
  test.each(commands.map((args) => [args] as const))('svc %j on a read-only one is exit 12, and no defect', (args) => {
    const { status, stderr } = onFileSystem('ro,mode=700', 'true', args)
    expect([status, stderr]).toEqual([12, expect.stringMatching(/read-only/)])
    expect(stderr).not.toContain('defect')
  })

  test.each(commands.map((args) => [args] as const))('svc %j on a full one is exit 12, and no defect', (args) => {
    const { status, stderr } = onFileSystem('size=64k,mode=700', 'head -c 64k /dev/zero > "$PLACE/fill"', args)
    expect([status, stderr]).toEqual([12, expect.stringMatching(/full|no space left/)])
    expect(stderr).not.toContain('defect')
  })
})
