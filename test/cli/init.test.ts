import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { starterFile } from '../../src/cli/setup/init-file.ts'
import { documentOf } from '../support/program/documents.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { isQuick } from '../support/suite/tier.ts'

let home: Home
let port = 0
const server = createServer((_, response) => response.end('hello'))
beforeEach(async () => {
  home = svcHome()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  server.close()
  server.closeAllConnections()
  home.remove()
})

/**
 * Lets svc find only these ports: discovery greets whatever listens on this machine, and that would be the servers of
 * other tests. The environment of a svc, by a preloaded module that shortens the kernel's list.
 */
const seeing = (...ports: readonly number[]): Record<string, string> => {
  const shorten = `import fs from 'node:fs/promises'
    const read = fs.readFile
    const ports = ${JSON.stringify(ports.map((one) => one.toString(16).toUpperCase().padStart(4, '0')))}
    fs.readFile = async (path, ...more) => {
      const text = await read(path, ...more)
      if (!String(path).startsWith('/proc/net/tcp')) return text
      return text.split('\\n').filter((line) => ports.some((one) => line.includes(':' + one + ' '))).join('\\n')
    }`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shorten)}` }
}

const path = (): string => join(home.folder, 'svc.yaml')

describe.skipIf(process.platform !== 'linux')('svc init, with a simulated list of ports', () => {
  test('--yes writes what it finds with the line for editors, validates it, runs health once and says what is next', async () => {
    const { code, stdout, stderr } = await home.svc(['init', '--yes'], { env: seeing(port) })
    expect(code).toBe(0)
    const text = readFileSync(path(), 'utf8')
    const [first = ''] = text.split('\n')
    expect(first).toMatch(/^# yaml-language-server: \$schema=\/.*\/dist\/schemas\/svc\.schema\.json$/)
    expect(existsSync(first.replace(/^.*\$schema=/, ''))).toBe(true)
    expect(text).toContain(`url: http://127.0.0.1:${port}/`)
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    expect(stdout).toContain(`${path()} is written and valid: 1 monitor\n`)
    // The result of svc health for the monitor of this test.
    expect(stdout).toContain(`http http-${port}`)
    expect(stderr).toContain(`App: http http-${port}`)
    expect(stderr).toContain('svc monitors validate')
    expect((await home.run(['monitors', 'validate'])).code).toBe(0)
  })

  test('where it recognizes nothing, it writes a valid file that says what to edit, and turns no gate green', async () => {
    const { code, stdout, stderr } = await home.svc(['init', '--yes'], { env: seeing() })
    expect([code, stdout]).toEqual([0, `${path()} is written and valid: 1 monitor\n`])
    expect(stderr).toContain('edit the monitor')
    const [first, , third] = readFileSync(path(), 'utf8').split('\n')
    expect(first).toContain('yaml-language-server')
    expect(third).toBe('types:')
    expect((await home.run(['health'])).code).toBe(3)
  })

  test('never overwrites a file, and says so before it looks at anything', async () => {
    writeFileSync(path(), '# mine\n', { mode: 0o600 })
    const { code, stderr } = await home.run(['init', '--yes'])
    expect([code, stderr]).toEqual([12, expect.stringContaining('svc init never overwrites a file')])
    expect(readFileSync(path(), 'utf8')).toBe('# mine\n')
    expect(stderr).not.toContain('Looking')
  })

  test('without a terminal and without --yes it writes nothing', async () => {
    for (const args of [['init'], ['init', '--json']]) {
      expect((await home.run(args)).code).toBe(2)
    }
    expect(existsSync(path())).toBe(false)
  })

  test('--json prints one value, and --config names another file', async () => {
    const other = join(home.folder, 'folder', 'other.yaml')
    const { code, stdout } = await home.svc(['init', '--yes', '--json', '--config', other], { env: seeing(port) })
    expect(code).toBe(0)
    expect(documentOf('init', stdout)).toMatchObject({ file: other, starter: false, monitors: expect.any(Number) })
    const discovery = await home.svc(['monitors', 'discover', '--json'], { env: seeing(port) })
    expect(documentOf('monitors discover', discovery.stdout)).toMatchObject({ proposals: [{ type: 'App' }] })
    expect([existsSync(other), existsSync(path())]).toEqual([true, false])
  })

  if (!isQuick()) {
    test('on a terminal it shows the proposals and asks; no is an answer that writes nothing', async () => {
      const { code, stdout } = await home.terminal(
        ['init'],
        (screen) => (screen.includes('(y/n)') ? 'n\r' : undefined),
        seeing(port),
      )
      expect(code).toBe(0)
      expect(stdout).toContain(`App: http http-${port}`)
      expect(stdout).toContain('Nothing is written. svc monitors discover prints the proposal.')
      expect(stdout).not.toContain('Error')
      expect(existsSync(path())).toBe(false)
    })

    test('on a terminal yes writes the file', async () => {
      const { code } = await home.terminal(
        ['init'],
        (screen) => (screen.includes('(y/n)') ? 'y\r' : undefined),
        seeing(port),
      )
      expect(code).toBe(0)
      expect(existsSync(path())).toBe(true)
    })
  }
})

test('the file for a machine without known services is valid, and no gate is green with it', async () => {
  writeFileSync(path(), starterFile(['a line']), { mode: 0o600 })
  const validated = await home.run(['monitors', 'validate'])
  expect([validated.code, validated.stdout]).toEqual([0, expect.stringContaining('App 1')])
  for (const mode of ['Basic', 'Standard', 'Advanced']) {
    expect((await home.run(['health', '-m', mode])).code).toBe(3)
  }
})

describe('a place that cannot be written is refused before svc connects to anything', () => {
  const folderOf = (name: string): string => join(home.folder, name)
  const foreignFolder = (): string => {
    mkdirSync(folderOf('foreign'), { mode: 0o755 })
    chownSync(folderOf('foreign'), 65_534, 65_534)
    return folderOf('foreign')
  }
  const places: readonly (readonly [string, () => string, RegExp])[] = [
    ['below a file', () => join(folderOf('file'), 'new', 'svc.yaml'), /cannot be written/],
    ['in a folder that others can write', () => join(folderOf('shared'), 'svc.yaml'), /can be written by others/],
    ...(process.getuid?.() === 0
      ? [
          [
            'in a folder that another account owns',
            () => join(foreignFolder(), 'svc.yaml'),
            /belongs to another user/,
          ] as const,
        ]
      : []),
    ...(process.platform === 'linux'
      ? [
          [
            'in a file system that takes no files',
            () => '/proc/svc.yaml',
            /\/proc\/svc\.yaml cannot be written/,
          ] as const,
        ]
      : []),
  ]
  test.each(places)('%s', async (_, place, says) => {
    writeFileSync(folderOf('file'), '')
    mkdirSync(folderOf('shared'))
    chmodSync(folderOf('shared'), 0o777)
    const config = place()
    const before = home.files()
    const { code, stdout, stderr } = await home.run(['init', '--yes', '--config', config])
    expect([code, stdout]).toEqual([12, ''])
    expect(stderr).toMatch(says)
    expect(stderr).toMatch(/--config FILE/)
    expect(stderr).not.toContain('Looking at what listens')
    expect(home.files()).toEqual(before)
  })

  test('by svc monitors discover --write too', async () => {
    writeFileSync(folderOf('file'), '')
    const env = { SVC_HOME: join(folderOf('file'), 'new') }
    const { code, stderr } = await home.run(['monitors', 'discover', '--write'], { env })
    expect([code, stderr]).toEqual([12, expect.stringContaining('cannot be written')])
    writeFileSync(path(), 'types: {}\n')
    const again = await home.run(['monitors', 'discover', '--write'])
    expect([again.code, again.stderr]).toEqual([12, expect.stringContaining('already exists')])
  })
})
