import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storeOfService } from '../../src/core/store/service-store.ts'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { read } from '../support/suite/repository.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { isInstalled, run } from './installed.ts'

const missing = process.platform !== 'linux' || !isInstalled('dpkg-deb') ? 'dpkg-deb is not installed' : undefined
const noRoot =
  mountNamespaceMissing ?? (isInstalled('systemd-sysusers') ? undefined : 'systemd-sysusers is not installed')

const store = '/var/lib/svc/.local/share/svc/svc.db'
const guide = read('docs/serve.md')
/** The lines of docs/serve.md, as they stand there. */
const [, folderLine = ''] = /^(sudo install -d .*)$/m.exec(guide) ?? []
const [, account = '', cronLine = ''] = /^15 3 \* \* \* {2}(\S+) {2}(.*)$/m.exec(guide) ?? []
const [, restoreLines = ''] = /```sh norun\n(sudo systemctl stop svc\n[^`]*)```/.exec(guide) ?? []

/** As sudo of Debian: another account with its home folder, and none of the variables of the caller. */
const sudo = `#!/bin/sh
[ "$1" = -u ] || exec "$@"
account=$2; shift 2
exec setpriv --reuid="$account" --regid="$account" --clear-groups env -i HOME=/var/lib/svc PATH=/usr/bin:/bin "$@"
`
/** Starts and stops the unit as it is installed: its command, its account and the environment of its drop-in. */
const systemctl = `#!/bin/sh
case $1 in
stop) kill "$(cat /run/svc.pid)"; while kill -0 "$(cat /run/svc.pid)" 2>/dev/null; do sleep 0.1; done ;;
start)
  line=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/svc.service)
  more=$(sed -n 's/^Environment=//p' /etc/systemd/system/svc.service.d/*.conf 2>/dev/null)
  sudo -u svc $more sh -c "echo \\$\\$ > /run/svc/pid; SYSTEMD_EXEC_PID=\\$\\$ exec $line --port 0" > /run/svc.log 2>&1 &
  until [ -s /run/svc/port ]; do sleep 0.1; done
  cp /run/svc/pid /run/svc.pid ;;
esac
`

peerSuite(missing, 'the lines of docs/serve.md about backups, and the Debian package', () => {
  const system = join(temporaryFolder(), 'system')
  beforeAll(() => {
    const built = run(
      process.execPath,
      ['tools/deb.ts', '--out', temporaryFolder()],
      process.env as Record<string, string>,
    )
    expect(built.status, built.stderr).toBe(0)
    mkdirSync(system)
    expect(run('dpkg-deb', ['--extract', built.stdout.trim(), system], { PATH: '/usr/bin:/bin' }).status).toBe(0)
  }, 300_000)

  test('P8 (unpacked, without root) the packaged unit means the store in the home folder of its account', async () => {
    const passwd = () => 'svc:x:990:990::/var/lib/svc:/usr/sbin/nologin\n'
    const owner = process.getuid?.() ?? 0
    expect(await storeOfService({ root: system, owner, accounts: { passwd } })).toMatchObject({
      account: 'svc',
      place: store,
      isUsed: false,
    })
    expect([account, cronLine, restoreLines].join(' ')).not.toMatch(/SVC_HOME|SVC_STORE|--store/)
  })

  peerSuite(noRoot, 'in a root of their own', () => {
    let mounts: MountNamespace
    beforeAll(async () => {
      mounts = await startMountNamespace()
      const put = (path: string, text: string): void => {
        mkdirSync(join(system, path, '..'), { recursive: true })
        writeFileSync(join(system, path), text, { mode: 0o755 })
      }
      put('usr/local/bin/sudo', sudo)
      put('usr/local/bin/systemctl', systemctl)
      // Of this machine, everything but its programs of svc.
      await mounts.shell(`cd '${system}'
        mkdir -p bin lib lib64 proc dev tmp root run/svc var/lib/svc var/backups etc/systemd/system/svc.service.d
        chmod 755 . && systemd-sysusers --root='${system}'
        mount --bind /usr/bin bin; mount --rbind /proc proc; mount --rbind /dev dev
        for at in lib lib64; do mount --bind "$(readlink -f /$at)" $at; done
        chown --reference=/proc/self . && chroot . /bin/env PATH=/bin chown svc:svc /var/lib/svc /run/svc
        chmod 700 var/lib/svc`)
    }, 60_000)
    afterAll(async () => {
      await inRoot('[ ! -s /run/svc.pid ] || systemctl stop svc')
      await mounts.remove()
    })

    /** Runs shell lines as root there, and gives the exit code after what they write. */
    const inRoot = async (lines: string): Promise<string> => {
      const [program, args] = mounts.command('chroot', [system, '/bin/env', '-i', 'HOME=/root'])
      const all = [...args, 'PATH=/usr/local/bin:/usr/bin:/bin', 'sh', '-c', lines]
      const { status, stdout, stderr } = run(program, all, { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' })
      return `${stdout}${stderr}exit ${status}\n`
    }
    const cron = async (line = cronLine): Promise<string> =>
      await inRoot(`sudo -u ${account} sh -c '${line.replaceAll(String.raw`\%`, '%')}'`)
    const restore = async (): Promise<string> =>
      await inRoot(`set -e; ${restoreLines.replace('Mon.db', '$(LC_ALL=C date +%a).db')}`)
    const users = async (): Promise<readonly string[]> => {
      const listed = await inRoot('sudo -u svc svc users list --json')
      expect(listed).toMatch(/exit 0\n$/)
      const { users } = JSON.parse(listed.replace(/exit 0\n$/, '')) as { users: readonly { userName: string }[] }
      return users.map(({ userName }) => userName)
    }
    const add = (name: string) => inRoot(`sudo -u svc svc users add ${name} --no-password --role Admin`)

    test('P8 they back up and restore the store of the service, and a drop-in moves them with it', async () => {
      expect(await inRoot('systemctl start svc')).toBe('exit 0\n')
      expect(await add('ann')).toContain(`${store}`)
      expect(await inRoot(folderLine)).toBe('exit 0\n')
      expect(await cron()).toBe('exit 0\n')
      expect(await add('bob')).toContain('exit 0')
      expect(await users()).toEqual(['ann', 'bob'])
      expect(await restore()).toMatch(/exit 0\n$/)
      expect(await users()).toEqual(['ann'])
      expect(await inRoot('test -e /var/lib/svc/store || test -e /root/.local/share/svc')).toBe('exit 1\n')

      // The lines of an earlier version of the guide, and root.
      const other = `svc.service keeps its store at ${store}`
      const output = await cron(cronLine.replace('svc backup', 'SVC_HOME=/var/lib/svc svc backup'))
      expect(output.replaceAll(/\s+/g, ' ')).toMatch(new RegExp(`${other}.*exit 12 $`))
      const file = '/var/backups/svc/$(LC_ALL=C date +%a).db'
      for (const command of [`sudo -u svc SVC_HOME=/var/lib/svc svc restore ${file}`, `svc restore ${file}`]) {
        const refused = (await inRoot(command)).replaceAll(/\s+/g, ' ')
        expect(refused).toMatch(
          new RegExp(`svc.service uses another store: ${store}, of the account svc; this would.*12 $`),
        )
      }

      expect(await inRoot('systemctl stop svc; install -d -m 700 -o svc -g svc /srv/svc')).toBe('exit 0\n')
      writeFileSync(
        join(system, 'etc/systemd/system/svc.service.d/a.conf'),
        '[Service]\nEnvironment=SVC_HOME=/srv/svc\n',
      )
      expect(await inRoot('systemctl start svc')).toBe('exit 0\n')
      expect(await add('cleo')).toContain('/srv/svc/store/svc.db')
      expect(await cron()).toBe('exit 0\n')
      expect(await add('dora')).toContain('exit 0')
      expect(await restore()).toMatch(/exit 0\n$/)
      expect(await users()).toEqual(['cleo'])
    }, 180_000)
  })
})
