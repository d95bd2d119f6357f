import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { suiteWith } from '../support/suite/peer.ts'

const repository = new URL('../..', import.meta.url).pathname.replace(/\/$/, '')
const uid = 4_711
/** As in `deploy/systemd/svc.sysusers`. */
const home = '/var/lib/svc'
const store = `${home}/.local/share/svc/svc.db`

suiteWith(mountNamespaceMissing, 'root, and the packaged unit with a second account', () => {
  let mounts: MountNamespace
  const rootHome = (): string => join(mounts.folder, 'root')
  beforeAll(async () => {
    mounts = await startMountNamespace()
    const { folder } = mounts
    await mounts.shell(`
      mkdir -p '${folder}/root' '${folder}/lib' '${folder}/units' '${folder}/overrides'
      cp /etc/passwd '${folder}/passwd'
      echo 'svc:x:${uid}:${uid}::${home}:/usr/sbin/nologin' >> '${folder}/passwd'
      mount --bind '${folder}/passwd' /etc/passwd
      mkdir -p /usr/lib/systemd/system /etc/systemd/system
      cp '${repository}/deploy/systemd/svc.service' '${folder}/units/svc.service'
      chmod 644 '${folder}/units/svc.service'
      mount --bind '${folder}/units' /usr/lib/systemd/system
      mount --bind '${folder}/overrides' /etc/systemd/system
      mount --bind '${folder}/lib' /var/lib
      install -d -m 700 -o ${uid} -g ${uid} ${home}
    `)
  })
  afterAll(() => mounts.remove())

  const run = async (before: readonly string[], account: string, args: readonly string[]) => {
    const line = [...before, 'env', '-i', `HOME=${account}`, 'PATH=/usr/bin:/bin', process.execPath]
    const [first = '', ...rest] = [...line, join(repository, 'bin/run.js'), ...args]
    const [file, all] = mounts.command(first, rest)
    return await promisify(execFile)(file, [...all]).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }) => ({ code: Number(code), stdout: String(stdout), stderr: String(stderr) }),
    )
  }
  const asRoot = (...args: string[]) => run([], rootHome(), args)
  const asService = (...args: string[]) =>
    run(['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups'], home, args)

  test('P8 the service has no store yet: root sees that none exists', async () => {
    const ran = await asRoot('users', 'list')
    expect([ran.code, ran.stderr]).toEqual([12, expect.stringContaining('No store exists')])
  })

  test('P8 root gets no second store, and the command that works', async () => {
    expect(await asService('users', 'add', 'ann', '--no-password', '--role', 'Admin')).toMatchObject({ code: 0 })
    for (const words of [
      'users list',
      'users add eve --no-password',
      'roles show ann --local',
      'keys list',
      'heartbeats list',
      'serve --port 0',
    ]) {
      const ran = await asRoot(...words.split(' '))
      expect([words, ran.code]).toEqual([words, 12])
      expect(ran.stderr.replace(/\s+/g, ' ')).toContain(`svc.service keeps its store at ${store}, as the account svc`)
      expect(ran.stderr).toContain(`\n  sudo -u svc svc ${words}\n`)
      expect(ran.stderr).not.toContain('No store exists')
    }
    const doctor = JSON.parse((await asRoot('doctor', '--json')).stdout)
    expect(doctor.checks.find(({ check }: { check: string }) => check === 'store')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining(store),
      next: 'sudo -u svc svc doctor',
    })
    expect(existsSync(join(rootHome(), '.local/share/svc'))).toBe(false)
    const users = await asService('users', 'list', '--json')
    expect(JSON.parse(users.stdout)).toMatchObject({ store, users: [{ userName: 'ann' }] })
  }, 60_000)

  test('P8 root gets no second store for a job, which runs, and the place to report to', async () => {
    const ran = await asRoot('heartbeat', 'nightly', '--', 'sh', '-c', 'exit 3')
    expect(ran.code).toBe(3)
    const message = ran.stderr.replace(/\s+/g, ' ')
    for (const what of ['start', 'end']) {
      expect(message).toContain(
        `the ${what} of nightly could not be reported: svc.service keeps its store at ${store}, as the account svc`,
      )
    }
    expect(message).toContain('SVC_TOKEN=KEY svc heartbeat NAME --server URL -- COMMAND')
    expect(existsSync(join(rootHome(), '.local/share/svc'))).toBe(false)
    expect(await asRoot('heartbeat', 'nightly')).toMatchObject({
      code: 12,
      stderr: expect.stringContaining('sudo -u svc svc heartbeat nightly'),
    })
  }, 60_000)

  test('P8 root may create another store by name, and is warned from then on', async () => {
    const own = join(rootHome(), '.local/share/svc/svc.db')
    expect(await asRoot('users', 'add', 'eve', '--no-password', '--store', own)).toMatchObject({ code: 0 })
    const ran = await asRoot('users', 'list')
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining('eve') })
    const warning = `Warning: svc.service uses another store: ${store}, of the account svc`
    expect(ran.stderr).toContain(warning)
    const job = await asRoot('heartbeat', 'nightly', '--', 'true')
    expect([job.code, job.stderr.split(warning).length - 1]).toEqual([0, 1])
  }, 60_000)
})
