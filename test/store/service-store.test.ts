import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { secondStore } from '../../src/cli/session/service-store.ts'
import { storeOfService } from '../../src/core/store/service-store.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let root: string
beforeEach(() => {
  root = temporaryFolder()
})

const put = (path: string, text = ''): string => {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
  writeFileSync(file, text, { mode: 0o644 })
  return file
}
const packaged = 'usr/lib/systemd/system/svc.service'
const unit = '[Unit]\nDescription=User=eve\n[Service]\nExecStart=/usr/bin/svc serve\nUser=svc\n'
const ownStore = '/var/lib/svc/.local/share/svc/svc.db'
const look = () =>
  storeOfService({
    root,
    owner: process.getuid?.() ?? 0,
    accounts: { passwd: () => 'root:x:0:0::/root:/bin/sh\nsvc:x:990:990::/var/lib/svc:/usr/sbin/nologin\n' },
  })

describe.skipIf(process.platform === 'win32')('the store of svc.service', () => {
  test('P8 is that in the home folder of the account of the unit', async () => {
    put(packaged, unit)
    expect(await look()).toBeUndefined()
    put(ownStore)
    expect(await look()).toEqual({ account: 'svc', store: ownStore, variables: [] })
  })

  test.each([
    ['Environment=SVC_HOME=/srv/a', '/srv/a/store/svc.db', ['SVC_HOME=/srv/a']],
    ['Environment="X=1 2" \'SVC_HOME=%S/svc\'', '/var/lib/svc/store/svc.db', ['SVC_HOME=/var/lib/svc']],
    ['Environment=SVC_STORE=/srv/b.db', '/srv/b.db', ['SVC_STORE=/srv/b.db']],
    ['ExecStart=\nExecStart=/usr/bin/svc serve \\\n  --store /srv/c.db', '/srv/c.db', ['SVC_STORE=/srv/c.db']],
  ])('P8 follows the drop-in %j', async (line, store, variables) => {
    put(packaged, unit)
    put('etc/systemd/system/svc.service.d/override.conf', `[Service]\n${line}\n`)
    put(store)
    expect(await look()).toEqual({ account: 'svc', store, variables })
  })

  test('P8 is a database that the unit names, without its password', async () => {
    put(packaged, `${unit}Environment=SVC_STORE=postgres://svc:horse-7@db/svc\n`)
    expect(await look()).toEqual({
      account: 'svc',
      store: 'postgres://svc@db/svc',
      variables: ['SVC_STORE=postgres://svc@db/svc'],
    })
  })

  test.each([
    ['no unit', () => {}],
    ['a unit that runs as root', () => void put(packaged, unit.replace('User=svc', 'User=root'))],
    ['a unit of an account that does not exist', () => void put(packaged, unit.replace('User=svc', 'User=eve'))],
    ['an account that a shell would run', () => void put(packaged, unit.replace('User=svc', 'User=$(id)'))],
    ['a value that only systemd has', () => void put(packaged, `${unit}Environment=SVC_HOME=%h\n`)],
    ['a unit that another account can write', () => chmodSync(put(packaged, unit), 0o646)],
    ['a folder that another account can write', () => chmodSync(dirname(put(packaged, unit)), 0o757)],
    [
      'a folder above it that another account can write',
      () => {
        put(packaged, unit)
        chmodSync(join(root, 'usr'), 0o757)
      },
    ],
    [
      'a link on the way that another account can replace',
      () => {
        const file = put('srv/svc.service', unit)
        mkdirSync(join(root, 'open'))
        symlinkSync(file, join(root, 'open/svc.service'))
        chmodSync(join(root, 'open'), 0o757)
        mkdirSync(join(root, dirname(packaged)), { recursive: true })
        symlinkSync(join(root, 'open/svc.service'), join(root, packaged))
      },
    ],
    [
      'a masked unit',
      () => {
        put(packaged, unit)
        mkdirSync(join(root, 'etc/systemd/system'), { recursive: true })
        symlinkSync('/dev/null', join(root, 'etc/systemd/system/svc.service'))
      },
    ],
  ])('P8 is unknown with %s', async (_, arrange) => {
    put(ownStore)
    arrange()
    expect(await look()).toBeUndefined()
  })

  test('P8 a drop-in that another account can write is not read', async () => {
    put(packaged, unit)
    put(ownStore)
    chmodSync(put('etc/systemd/system/svc.service.d/a.conf', '[Service]\nUser=root\n'), 0o666)
    expect(await look()).toMatchObject({ account: 'svc', store: ownStore })
  })
})

describe.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux')(
  'root beside the store of svc.service',
  () => {
    const service = { account: 'svc', store: ownStore, variables: ['SVC_HOME=/srv/a b'] }
    const find = async () => service

    test('P8 gets no second store, and the command for that of the service', async () => {
      const second = await secondStore({}, { HOME: root }, find)
      expect(second?.fault).toMatchObject({
        fault: 'Local',
        message: `svc.service keeps its store at ${ownStore}, as the account svc; root has none at ${root}/.local/share/svc/svc.db`,
      })
      expect(second?.fault?.details.hints).toEqual([
        'For another store: --store or SVC_STORE',
        "sudo -u svc 'SVC_HOME=/srv/a b' svc COMMAND",
      ])
    })

    test('P8 with a store of its own gets a warning', async () => {
      put('.local/share/svc/svc.db')
      expect(await secondStore({}, { HOME: root }, find)).toEqual({
        fault: undefined,
        warning: `Warning: svc.service uses another store: ${ownStore}, of the account svc`,
      })
    })

    test.each([
      [{ store: '/srv/x.db' }, {}],
      [{}, { SVC_STORE: '/srv/x.db' }],
      [{}, { SVC_HOME: '/srv/x' }],
    ])('P8 may choose another store: %j %j', async (flags, env) => {
      expect(await secondStore(flags, { HOME: root, ...env }, find)).toBeUndefined()
    })
  },
)
