import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import Serve from '../../src/commands/serve.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

let home: Home
beforeEach(() => {
  home = temporaryHome()
  writeFileSync(join(home.folder, 'svc.yaml'), 'types: {Sql: [{kind: tcp, name: queue, host: 127.0.0.1, port: 1}]}\n', {
    mode: 0o600,
  })
  writeFileSync(
    join(home.folder, 'drill.yaml'),
    'ends: 1m\nsteps:\n  - {at: 5s, monitor: Sql/tcp queu, fault: refused}\n',
  )
})

const serve = (...flags: readonly string[]) =>
  home.run([
    'serve',
    '--config',
    join(home.folder, 'svc.yaml'),
    '--rehearse',
    join(home.folder, 'drill.yaml'),
    ...flags,
  ])

describe('Y1 svc serve --rehearse', () => {
  test('refuses the port at which gates expect production, given or by default', async () => {
    expect(Serve.flags.port.default).toBe(8_790)
    for (const flags of [[], ['--port', '8790']]) {
      const { code, stderr } = await serve(...flags)
      expect(code).toBe(2)
      expect(stderr).toContain('--rehearse needs a port of its own')
      expect(stderr).toContain('--port 8791')
    }
  })

  test.each([
    ['--store', 'svc.db'],
    ['--store', 'postgres://svc@127.0.0.1/svc'],
    ['--only', 'health'],
  ])('refuses %s %s: it opens no store, with users or without', async (flag, value) => {
    const { code, stderr } = await serve('--port', '0', flag, value)
    expect(code).toBe(2)
    expect(stderr).toContain(`${flag} cannot be used with --rehearse`)
  })

  test('names a mistake of the script with its line, its source and the way out', async () => {
    const { code, stderr } = await serve('--port', '0')
    expect(code).toBe(12)
    expect(stderr).toMatch(/drill\.yaml:3:14: steps\[0\]\.monitor is "Sql\/tcp queu"/)
    expect(stderr).toContain('did you mean `Sql/tcp queue`?')
    expect(stderr).toContain('3 |   - {at: 5s, monitor: …, fault: refused}\n')
    expect(stderr.trimEnd().endsWith('Correct the file, then start again')).toBe(true)
  })

  test('refuses a svc.yaml with a mistake, a script that is missing, and other machines without TLS', async () => {
    const missing = await home.run(['serve', '--port', '0', '--rehearse', join(home.folder, 'nope.yaml')])
    expect(missing.code).toBe(12)
    expect(missing.stderr).toContain('--rehearse: ')
    writeFileSync(join(home.folder, 'drill.yaml'), 'ends: 1m\nsteps:\n  - {at: 5s, http: hang}\n')
    const open = await serve('--port', '0', '--host', '0.0.0.0')
    expect(open.code).toBe(2)
    expect(open.stderr).toContain('--host 0.0.0.0 requires TLS')
    writeFileSync(join(home.folder, 'svc.yaml'), 'types: {Sql: [{kind: tcpp, name: queue}]}\n', { mode: 0o600 })
    expect((await serve('--port', '0')).code).toBe(12)
  })

  test('leaves no file in the settings folder', async () => {
    const before = home.files()
    await serve('--port', '0')
    expect(home.files()).toEqual(before)
  })
})
