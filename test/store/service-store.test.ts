import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { refuseOtherStore, secondStore } from '../../src/cli/session/service-store.ts'
import { storePath } from '../../src/cli/session/session.ts'
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
    const expected = { account: 'svc', home: '/var/lib/svc', place: ownStore, store: ownStore, variables: [] }
    expect(await look()).toEqual({ ...expected, isUsed: false })
    put(ownStore)
    expect(await look()).toEqual({ ...expected, isUsed: true })
  })

  test('P8 is used as soon as the unit is enabled, before it exists', async () => {
    const file = put(packaged, unit)
    mkdirSync(join(root, 'etc/systemd/system/multi-user.target.wants'), { recursive: true })
    symlinkSync(file, join(root, 'etc/systemd/system/multi-user.target.wants/svc.service'))
    expect(await look()).toMatchObject({ isUsed: true })
  })

  test('P8 is that of root for a unit without an account', async () => {
    put(packaged, unit.replace('User=svc', ''))
    expect(await look()).toMatchObject({ account: 'root', place: '/root/.local/share/svc/svc.db' })
  })

  test.each([
    ['Environment=SVC_HOME=/srv/a', '/srv/a/store/svc.db', ['SVC_HOME=/srv/a']],
    ['Environment="X=1 2" \'SVC_HOME=%S/svc\'', '/var/lib/svc/store/svc.db', ['SVC_HOME=/var/lib/svc']],
    ['Environment=SVC_STORE=/srv/b.db', '/srv/b.db', ['SVC_STORE=/srv/b.db']],
    ['Environment=SVC_HOME=/srv/x\nEnvironmentFile=-/etc/default/svc', '/srv/f/store/svc.db', ['SVC_HOME=/srv/f']],
    ['EnvironmentFile=-/etc/default/none', ownStore, []],
    ['ExecStart=\nExecStart=/usr/bin/svc serve \\\n  --store /srv/c.db', '/srv/c.db', ['SVC_STORE=/srv/c.db']],
  ])('P8 follows the drop-in %j', async (line, store, variables) => {
    put(packaged, unit)
    put('etc/systemd/system/svc.service.d/override.conf', `[Service]\n${line}\n`)
    put('etc/default/svc', '# the store\nSVC_HOME="/srv/f"\n')
    put(store)
    expect(await look()).toMatchObject({ account: 'svc', place: store, store, variables, isUsed: true })
  })

  test('P8 is a database that the unit names, without its password', async () => {
    put(packaged, `${unit}Environment=SVC_STORE=postgres://svc:horse-7@db/svc\n`)
    expect(await look()).toMatchObject({
      account: 'svc',
      place: 'postgres://svc:horse-7@db/svc',
      store: 'postgres://svc@db/svc',
      isUsed: true,
      variables: ['SVC_STORE=postgres://svc@db/svc'],
    })
  })

  test.each([
    ['no unit', () => {}],
    ['a unit of an account that does not exist', () => void put(packaged, unit.replace('User=svc', 'User=eve'))],
    ['an account that a shell would run', () => void put(packaged, unit.replace('User=svc', 'User=$(id)'))],
    [
      'a file of the environment that another account can write',
      () => {
        put(packaged, `${unit}EnvironmentFile=/etc/default/svc\n`)
        chmodSync(put('etc/default/svc', 'SVC_HOME=/srv/x\n'), 0o666)
      },
    ],
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
    const service = {
      account: 'svc',
      home: '/var/lib/svc',
      place: ownStore,
      store: ownStore,
      isUsed: true,
      variables: ['SVC_HOME=/srv/a b'],
    }
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

    test('P8 with SVC_HOME, the account of the service gets no second store either', async () => {
      const own = async () => ({ ...service, account: userInfo().username })
      const second = await secondStore({}, { HOME: root, SVC_HOME: root }, own)
      // Root may choose with SVC_HOME: a container has no unit that runs.
      expect(second?.fault).toBe(process.getuid?.() === 0 ? undefined : expect.any(Error))
      expect(await storePath({}, { HOME: service.home }, own)).toBe(ownStore)
      expect(await storePath({}, { HOME: join(root, 'none') }, own)).toBe(ownStore)
      // A home of its own, and the service itself, whose unit may have changed since.
      expect(await storePath({}, { HOME: root }, own)).toBe(join(root, '.local/share/svc/svc.db'))
      const started = { HOME: service.home, SYSTEMD_EXEC_PID: String(process.pid), XDG_DATA_HOME: '/srv/d' }
      expect(await storePath({}, started, own)).toBe('/srv/d/svc/svc.db')
    })

    test('P8 svc restore refuses while the service uses another store, and names both where one is named', async () => {
      const env = { HOME: root }
      const refused = await refuseOtherStore({}, env, ['b.db', '--keep'], find).catch((error: unknown) => error)
      expect(refused).toMatchObject({
        fault: 'Local',
        message: `svc.service uses another store: ${ownStore}, of the account svc; this would replace ${root}/.local/share/svc/svc.db`,
        details: {
          hints: [
            "To restore it to that one: sudo -u svc 'SVC_HOME=/srv/a b' svc restore b.db --keep",
            `To restore it to this one: svc restore b.db --keep --store ${root}/.local/share/svc/svc.db`,
          ],
        },
      })
      const note = `Note: this replaces /srv/x.db; svc.service uses another store: ${ownStore}, of the account svc`
      expect(await refuseOtherStore({ store: '/srv/x.db' }, env, [], find)).toBe(note)
      expect(await refuseOtherStore({}, { ...env, SVC_STORE: '/srv/x.db' }, [], find)).toBe(note)
      expect(await refuseOtherStore({ store: ownStore }, env, [], find)).toBeUndefined()
      expect(await refuseOtherStore({}, env, [], async () => ({ ...service, isUsed: false }))).toBeUndefined()
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
