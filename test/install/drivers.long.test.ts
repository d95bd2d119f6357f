import { spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { documentOf } from '../support/program/documents.ts'
import { until } from '../support/suite/until.ts'
import { root } from './installed.ts'
import { type Installation, withoutDrivers } from './without-drivers.ts'

let svc: Installation
beforeEach(() => {
  svc = withoutDrivers()
  const closed = 'host: 127.0.0.1, port: 1'
  writeFileSync(
    join(svc.home.folder, 'svc.yaml'),
    `types:
  Ftp:
    - {kind: sftp, name: inbox, ${closed}}
    - {kind: sftp, name: outbox, ${closed}}
    - {kind: tcp, name: gate, ${closed}}
`,
    { mode: 0o600 },
  )
})
afterEach(() => svc.remove())

const folder = (): string => join(svc.home.folder, 'drivers')
const entries = (): readonly string[] => (existsSync(folder()) ? readdirSync(folder()) : [])
const add = (path: string, name = 'sftp') => svc.home.svc(['drivers', 'add', name], { env: { PATH: path } })

type Line = { readonly MonitorName: string; readonly NotChecked?: string; readonly StatusMessage: string }

/** The results of the SFTP monitors. */
async function health(env: Record<string, string> = {}) {
  const ran = await svc.home.svc(['health', '-t', 'Ftp', '-m', 'Basic', '--output', 'ndjson'], { env })
  const lines = ran.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
  const results = lines
    .filter(({ MonitorName }) => MonitorName.startsWith('sftp'))
    .map(({ NotChecked: notChecked, StatusMessage: message }) => ({ notChecked: notChecked ?? undefined, message }))
  return { code: ran.code, results }
}

describe('a driver that is missing', () => {
  test('H10 leaves its monitors not checked and the type unhealthy, and every command names the one that adds it', async () => {
    const run = await health()
    expect(run.code).toBe(3)
    expect(run.results).toEqual([
      expect.objectContaining({
        notChecked: 'missing driver',
        message: expect.stringContaining('svc drivers add sftp'),
      }),
      expect.objectContaining({ notChecked: 'missing driver' }),
    ])
    const sentence =
      'the driver for sftp is missing: svc drivers add sftp; not checked: Ftp/sftp inbox, Ftp/sftp outbox'
    const validated = await svc.home.svc(['monitors', 'validate'])
    expect([validated.code, validated.stderr]).toEqual([
      0,
      expect.stringMatching(new RegExp(`^Warning: ${sentence}\\n(?:Note: tcp gate: only the port .*\\n)$`)),
    ])
    const doctor = await svc.home.svc(['doctor', '--json'])
    const { checks } = documentOf('doctor', doctor.stdout) as { readonly checks: readonly { readonly check: string }[] }
    expect(checks.find(({ check }) => check === 'drivers')).toMatchObject({
      status: 'failed',
      message: 'the driver for sftp is missing: svc drivers add sftp',
      next: 'svc drivers add sftp',
    })
    const listed = documentOf('drivers list', (await svc.home.svc(['drivers', 'list', '--json'])).stdout)
    expect(listed).toMatchObject({
      drivers: [
        { name: 'sqlserver', package: 'tedious', state: 'missing', monitors: [] },
        { name: 'mongo', state: 'missing', version: null, path: null },
        {
          name: 'sftp',
          state: 'missing',
          monitors: ['Ftp/sftp inbox', 'Ftp/sftp outbox'],
          next: 'svc drivers add sftp',
        },
      ],
    })
  })

  test('K19 svc serve says so once, and uses a driver that is added while it runs', async () => {
    const { program, env } = svc.home
    const args = [program, 'serve', '--port', '0', '--port-file', join(svc.prefix, 'port')]
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let log = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (log += part.toString()))
    try {
      await until(() => existsSync(join(svc.prefix, 'port')), 30_000)
      const url = `http://127.0.0.1:${readFileSync(join(svc.prefix, 'port'), 'utf8').trim()}`
      const ask = async () => await (await fetch(`${url}/healthcheck?ServerType=Ftp&ExecutionMode=Basic`)).text()
      const key = { headers: { 'cache-control': 'no-cache' } }
      expect((await fetch(`${url}/healthcheck?ServerType=Ftp&ExecutionMode=Basic`, key)).status).toBeGreaterThanOrEqual(
        200,
      )
      expect(await ask()).toContain('missing')
      expect(log.split('svc drivers add sftp').length - 1).toBe(1)
      expect((await add(svc.npm())).code).toBe(0)
      await until(
        async () =>
          (await (await fetch(`${url}/healthcheck?ServerType=Ftp&ExecutionMode=Basic`, key)).text()).includes(
            'refused',
          ),
        20_000,
      )
    } finally {
      child.kill()
    }
  })

  test('K19 is not looked for in the working directory, in NODE_PATH or in a folder above', async () => {
    const others = [join(svc.prefix, 'elsewhere/node_modules'), join(svc.prefix, 'node_modules')]
    for (const other of others) cpSync(join(root, 'node_modules/ssh2'), join(other, 'ssh2'), { recursive: true })
    const { results } = await health({ NODE_PATH: others[0] ?? '' })
    expect(results.map(({ notChecked }) => notChecked)).toEqual(['missing driver', 'missing driver'])
    const [cwd = ''] = others
    const inside = spawn(process.execPath, [svc.home.program, 'drivers', 'list'], {
      cwd: join(cwd, '..'),
      env: svc.home.env,
    })
    let output = ''
    for await (const part of inside.stdout) output += part
    expect(output).toMatch(/sftp\tssh2\tmissing/)
  })

  test('K19 is found beside the package', async () => {
    cpSync(join(root, 'node_modules/ssh2'), join(svc.prefix, 'lib/node_modules/ssh2'), { recursive: true })
    for (const name of ['asn1', 'bcrypt-pbkdf', 'safer-buffer', 'tweetnacl'])
      cpSync(join(root, 'node_modules', name), join(svc.prefix, 'lib/node_modules', name), { recursive: true })
    expect((await health()).results).toEqual([
      expect.not.objectContaining({ notChecked: 'missing driver' }),
      expect.anything(),
    ])
  })
})

describe('svc drivers add', () => {
  test('K19 installs the driver with npm from files with hashes, without scripts, and its monitors run', async () => {
    const note = join(svc.prefix, 'arguments')
    const more = `writeFileSync(${JSON.stringify(note)}, JSON.stringify([process.argv.slice(2), packages['node_modules/ssh2']])); go()`
    const ran = await add(svc.npm(more))
    expect([ran.code, ran.stdout]).toEqual([
      0,
      expect.stringMatching(/^The driver for sftp is installed: ssh2 [\d.]+ in /),
    ])
    const [args, locked] = JSON.parse(readFileSync(note, 'utf8')) as [readonly string[], object]
    expect(args).toEqual(expect.arrayContaining(['ci', '--ignore-scripts', '--omit=dev']))
    expect(locked).toMatchObject({ integrity: expect.stringMatching(/^sha512-/) })
    expect((await health()).results.map(({ notChecked }) => notChecked)).toEqual([undefined, undefined])
    const again = await svc.home.svc(['drivers', 'add', 'sftp', '--json'], { env: { PATH: '/nonexistent' } })
    expect(documentOf('drivers add', again.stdout)).toMatchObject({ drivers: [{ name: 'sftp', added: false }] })
    const doctor = await svc.home.svc(['doctor', '--json'])
    expect(doctor.stdout).toContain('"drivers","status":"ok"')
  })

  test('K19 refuses a folder that others can write, and svc loads nothing from one', async () => {
    expect((await add(svc.npm())).code).toBe(0)
    chmodSync(folder(), 0o777)
    const run = await health()
    expect(run.results[0]).toMatchObject({
      notChecked: 'missing driver',
      message: expect.stringContaining('not trusted'),
    })
    const refused = await add(svc.npm())
    expect([refused.code, refused.stderr]).toEqual([12, expect.stringContaining(`chmod go-w ${folder()}`)])
    chmodSync(folder(), 0o700)
    expect((await health()).results[0]?.notChecked).toBeUndefined()
  })

  test('K19 names the drivers for an unknown name, and the reason when npm fails', async () => {
    const unknown = await add(svc.npm(), 'mongodb')
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringMatching(/unknown driver "mongodb"[\s\S]*sqlserver mongo sftp/),
    ])
    const absent = await add('/nonexistent')
    expect([absent.code, absent.stderr]).toEqual([
      12,
      expect.stringContaining('npm cannot be started: it is not on the PATH'),
    ])
    const offline = await add(svc.npm("process.stderr.write('npm error code ENOTFOUND\\n'); process.exit(1)"))
    expect([offline.code, offline.stderr]).toEqual([6, expect.stringContaining('npm does not reach its registry')])
    const full = await add(svc.npm("process.stderr.write('npm error code ENOSPC\\n'); process.exit(1)"))
    expect([full.code, full.stderr]).toEqual([12, expect.stringContaining('the disk is full')])
    expect(entries()).toEqual([])
  })

  const half = "mkdirSync('node_modules/ssh2', { recursive: true }); setInterval(() => {}, 1000)"

  test.each(['SIGINT', 'SIGKILL'] as const)(
    'K19 leaves the driver that was there when %s ends it in the middle',
    async (signal) => {
      expect((await add(svc.npm())).code).toBe(0)
      const [old] = entries()
      upgrade()
      const path = svc.npm(half)
      const child = spawn(process.execPath, [svc.home.program, 'drivers', 'add', 'sftp'], {
        env: { ...svc.home.env, PATH: path },
      })
      const note = join(path.split(':')[0] ?? '', 'pid')
      await until(() => entries().some((entry) => entry.startsWith('.')) && existsSync(note), 20_000)
      await until(() => Number(readFileSync(note, 'utf8')) > 0, 5_000)
      child.kill(signal)
      await new Promise((resolve) => child.once('close', resolve))
      if (signal === 'SIGKILL') process.kill(Number(readFileSync(note, 'utf8')), 'SIGKILL')
      else expect([child.exitCode, entries()]).toEqual([130, [old]])
      expect(entries()).toContain(old)
      expect((await health()).results[0]?.notChecked).toBeUndefined()
      expect((await add(svc.npm())).code).toBe(0)
      expect(entries()).toEqual(['sftp-newer'])
    },
  )

  test('K19 twice at once installs one', async () => {
    const path = svc.npm('setTimeout(go, 500)')
    const both = await Promise.all([add(path), add(path)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(entries()).toHaveLength(1)
    expect((await health()).results[0]?.notChecked).toBeUndefined()
  })

  /** As if another version of svc had been installed, which needs other contents. */
  function upgrade(): void {
    const file = join(svc.own, 'dist/drivers.json')
    const shipped = JSON.parse(readFileSync(file, 'utf8')) as { sftp: object }
    writeFileSync(file, JSON.stringify({ ...shipped, sftp: { ...shipped.sftp, folder: 'sftp-newer' } }))
  }

  test('K19 after an upgrade the old driver works, doctor names the command, and it replaces the driver', async () => {
    expect((await add(svc.npm())).code).toBe(0)
    upgrade()
    const doctor = JSON.parse((await svc.home.svc(['doctor', '--json'])).stdout) as {
      readonly checks: readonly object[]
    }
    expect(doctor.checks).toContainEqual(
      expect.objectContaining({ check: 'drivers', status: 'warning', next: 'svc drivers add sftp' }),
    )
    expect((await health()).results[0]?.notChecked).toBeUndefined()
    expect((await add(svc.npm())).code).toBe(0)
    expect(entries()).toEqual(['sftp-newer'])
    rmSync(join(folder(), 'sftp-newer/node_modules'), { recursive: true })
    mkdirSync(join(folder(), 'sftp-newer/node_modules'))
    expect((await add(svc.npm())).code).toBe(0)
    expect((await health()).results[0]?.notChecked).toBeUndefined()
  })
})
