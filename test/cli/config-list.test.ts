import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

type Row = { readonly key: string; readonly value: string | null; readonly origin: string; readonly note?: string }

let home: Home
beforeEach(() => {
  home = temporaryHome()
})

/** The rows of `svc config list --json`, by their keys. */
async function listed(
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Readonly<Record<string, Row>>> {
  const { code, stdout, stderr } = await home.run(['config', 'list', '--json', ...args], { env })
  expect([code, stderr]).toEqual([0, ''])
  return Object.fromEntries(
    (JSON.parse(stdout) as { readonly settings: readonly Row[] }).settings.map((row) => [row.key, row]),
  )
}

const configFile = (): string => join(home.folder, 'svc.yaml')

describe('svc config list', () => {
  test('names everything that is in force, and what is missing, without a configuration', async () => {
    const rows = await listed()
    expect(Object.keys(rows)).toEqual(
      'config store profile server sign-in ca-file insecure-http credentials keychain proxy home settings svc node'.split(
        ' ',
      ),
    )
    expect(rows['config']).toEqual({
      key: 'config',
      value: null,
      origin: 'default',
      note: `no file at ${configFile()} or /etc/svc/svc.yaml`,
    })
    expect(rows['store']).toEqual({
      key: 'store',
      value: join(home.folder, 'store', 'svc.db'),
      origin: 'SVC_HOME',
      note: 'does not exist yet',
    })
    expect(rows['server']).toMatchObject({ value: null, note: 'commands act on this machine' })
    expect(rows['keychain']).toMatchObject({ value: 'not usable', note: expect.stringContaining('D-Bus') })
    expect(rows['settings']).toEqual({ key: 'settings', value: home.folder, origin: 'SVC_HOME' })
    expect(rows['node']).toMatchObject({ value: process.versions.node, origin: process.execPath })
    expect(rows['svc']?.value).toMatch(/^\d+\.\d+\.\d+$/)
  })

  test('names the svc.yaml that commands read, and what named it', async () => {
    writeFileSync(configFile(), 'types: {}\n', { mode: 0o600 })
    expect((await listed())['config']).toEqual({ key: 'config', value: configFile(), origin: 'SVC_HOME' })
    const other = join(home.folder, 'other.yaml')
    writeFileSync(other, 'types: {}\n', { mode: 0o600 })
    expect((await listed([], { SVC_CONFIG: other }))['config']).toMatchObject({ value: other, origin: 'SVC_CONFIG' })
    expect((await listed(['--config', other]))['config']).toMatchObject({ value: other, origin: '--config' })
    expect((await listed([], { SVC_CONFIG: '/nowhere.yaml' }))['config']).toMatchObject({
      value: '/nowhere.yaml',
      note: 'there is no such file',
    })
    const without = await listed([], { SVC_HOME: join(home.folder, 'elsewhere') })
    expect(without['config']?.value).toBeNull()
  })

  test('names the file that svc health reads', async () => {
    mkdirSync(join(home.folder, 'folder'), { mode: 0o700 })
    const broken = join(home.folder, 'folder', 'svc.yaml')
    writeFileSync(broken, 'types: [\n', { mode: 0o600 })
    const env = { SVC_CONFIG: broken }
    const { code, stderr } = await home.run(['health'], { env })
    expect([code, stderr]).toEqual([12, expect.stringContaining(`${broken}:`)])
    // A file that is not valid is still in force, so it is listed.
    expect((await listed([], env))['config']).toMatchObject({ value: broken, origin: 'SVC_CONFIG' })
  })

  test('shows no password of a store, a proxy or a server, and no token', async () => {
    const env = {
      SVC_STORE: 'postgres://svc:hunter2-store@db.example.com/svc',
      HTTPS_PROXY: 'http://user:hunter2-proxy@proxy.example.com:3128',
      SVC_SERVER: 'https://svc.example.com',
      SVC_TOKEN: 'hunter2-token',
    }
    const rows = await listed([], env)
    expect(JSON.stringify(rows)).not.toContain('hunter2')
    expect(rows['store']).toMatchObject({ value: 'postgres://svc@db.example.com/svc', origin: 'SVC_STORE' })
    expect(rows['proxy']).toMatchObject({ value: 'proxy.example.com:3128', origin: 'HTTPS_PROXY' })
    expect(rows['sign-in']).toMatchObject({ value: 'token', origin: 'SVC_TOKEN' })
    const text = await home.run(['config', 'list'], { env })
    expect(text.stdout + text.stderr).not.toContain('hunter2')
  })

  test('prints records in a pipe: key, value, origin and note', async () => {
    const { stdout } = await home.run(['config', 'list'])
    expect(stdout).toContain(`store\t${join(home.folder, 'store', 'svc.db')}\tSVC_HOME\tdoes not exist yet\n`)
  })

  test('a profile that does not exist is a mistake, not a default', async () => {
    const { code, stderr } = await home.run(['config', 'list', '--profile', 'prod'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('unknown profile "prod"')])
  })
})

test('svc config get prints one value as it is in force', async () => {
  const store = join(home.folder, 'store', 'svc.db')
  expect(await home.run(['config', 'get', 'store'])).toMatchObject({ code: 0, stdout: `${store}\n` })
  const unknown = await home.run(['config', 'get', 'stor'])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('Did you mean store?')])
})
