import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { ask, type ServeNode, signIn, startNode } from '../support/program/serve-node.ts'
import { entry } from '../support/program/svc.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const statusOf = async (node: ServeNode, path: string): Promise<number> => (await ask(`${node.url}${path}`)).status

suiteWith(mountNamespaceMissing, 'W16 svc serve starts while its embedded store cannot be used', () => {
  let mounts: MountNamespace
  let peer: Server
  beforeAll(async () => {
    mounts = await startMountNamespace()
    peer = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    await once(peer, 'listening')
  })
  afterAll(async () => {
    peer.close()
    await mounts.remove()
  })
  const yaml = (): string =>
    `types:\n  App:\n    - {kind: tcp, name: peer, host: 127.0.0.1, port: ${(peer.address() as AddressInfo).port}}\n`

  /** A disk of its own in memory, which has the store, the settings and the home folder of a server. */
  async function diskNamed(name: string) {
    const disk = join(mounts.folder, name)
    const marker = join(disk, 'store', 'svc.db.serve.json')
    await mounts.shell(`mkdir ${disk} && mount -t tmpfs -o size=3m,mode=700 none ${disk}`)
    const [program, args] = mounts.command('env', [])
    const start = async (store = join(disk, 'store', 'svc.db'), settings = ''): Promise<ServeNode> =>
      await startNode({
        store,
        yaml: settings + yaml(),
        env: { SVC_HOME: disk, HOME: disk },
        command: [program, ...args],
      })
    const has = async (path: string): Promise<boolean> =>
      (await mounts.shell(`test -e ${path} && echo yes || true`)) !== ''
    return { disk, marker, start, has }
  }

  /** It watches without its store, and says so once. */
  async function watchesWithout(node: ServeNode, reason: RegExp): Promise<void> {
    expect(await statusOf(node, '/livez')).toBe(200)
    expect(await statusOf(node, '/healthcheck?ExecutionMode=Basic&ServerType=App')).toBe(200)
    expect(await statusOf(node, '/readyz')).toBe(503)
    expect((await signIn(node)).status).toBe(503)
    const warnings = node.log().match(/[^\n]*this server runs its monitors without it[^\n]*/g)
    expect(warnings).toEqual([expect.stringMatching(reason)])
  }

  /** Without a restart, with the Admin that it makes or that was there. */
  async function usesIt(node: ServeNode): Promise<void> {
    await until(async () => (await statusOf(node, '/readyz')) === 200)
    expect((await signIn(node)).status).toBe(200)
    expect(node.log()).toContain('this server uses it from now on')
  }

  const fill = (disk: string): string => `dd if=/dev/zero of=${disk}/filler bs=4k 2> /dev/null || true`

  test.concurrent('W16 a full disk without a store: it makes the store, its entry and its marker once there is room', async () => {
    const { disk, marker, start, has } = await diskNamed('full')
    await mounts.shell(fill(disk))
    await using node = await start()
    await watchesWithout(node, new RegExp(`the disk is full: .*The file system is ${disk} \\(tmpfs from none\\)\\.`))
    expect(node.log()).toMatch(/"level":"warn"[^\n]*commands do not find this server yet/)
    expect(await has(marker)).toBe(false)
    await mounts.shell(`rm ${disk}/filler`)
    await usesIt(node)
    await until(async () => await has(marker))
    expect(JSON.parse(await mounts.shell(`cat ${marker}`))).toMatchObject({ files: { database: expect.any(String) } })
    await until(async () => (await mounts.shell(`ls ${disk}/.cache/svc/running`)) !== '')
    await until(async () => (await mounts.shell(`ls ${disk}/state`)).includes('store-'))
    expect(await node.stop()).toBe(0)
  })

  test.concurrent('W16 a read-only disk: it names the file system, and uses the store of the killed server before it once that can be written', async () => {
    const { disk, start, has } = await diskNamed('read-only')
    const settings = `serve: {socket: ${disk}/svc.sock, audit: {stream: ${disk}/audit.log}}\n`
    const startBoth = async (): Promise<ServeNode> => await start(undefined, settings)
    {
      await using before = await startBoth()
      expect((await signIn(before)).status).toBe(200)
      await before.stop('SIGKILL')
    }
    // The last server has left the socket, and the first one to come would make the stream.
    await mounts.shell(`rm ${disk}/audit.log && mount -o remount,ro ${disk}`)
    await using node = await startBoth()
    await watchesWithout(node, new RegExp(`the file system is read-only: .*The file system is ${disk} \\(tmpfs`))
    expect(node.log()).toMatch(/"level":"warn"[^\n]*audit\.log is on a read-only file system/)
    expect(node.log()).toMatch(/"level":"warn"[^\n]*svc tries again until it can be made/)
    await mounts.shell(`mount -o remount,rw ${disk}`)
    await usesIt(node)
    expect(await has(`${disk}/audit.log`)).toBe(true)
    const socket = `curl --silent --unix-socket ${disk}/svc.sock http://localhost/livez > /dev/null && echo answers`
    await until(async () => (await mounts.shell(`${socket} || true`)) === 'answers\n')
    expect(await node.stop()).toBe(0)
  })

  test.concurrent('W16 a full disk with the store of a killed server: it serves, and signs in again once there is room', async () => {
    const { disk, start } = await diskNamed('used')
    {
      await using before = await start()
      expect((await signIn(before)).status).toBe(200)
      await before.stop('SIGKILL')
    }
    await mounts.shell(fill(disk))
    await using node = await start()
    expect(await statusOf(node, '/healthcheck?ExecutionMode=Basic&ServerType=App')).toBe(200)
    await mounts.shell(`rm ${disk}/filler`)
    await until(async () => (await signIn(node)).status === 200)
    await until(async () => (await statusOf(node, '/readyz')) === 200)
    expect(await node.stop()).toBe(0)
  })

  test.concurrent('W16 a store whose disk is not mounted is gone: svc makes none in its place, names the note that says so, and uses it once the disk is there', async () => {
    const { disk, start, has } = await diskNamed('gone')
    const point = `${disk}/point`
    const mount = `mount --bind ${disk}/real ${point}`
    const store = `${point}/store/svc.db`
    await mounts.shell(`mkdir -m 700 ${disk}/real ${point} && ${mount}`)
    {
      await using before = await start(store)
      expect((await signIn(before)).status).toBe(200)
      await until(async () => await has(`${disk}/state`))
      expect(await before.stop()).toBe(0)
    }
    await mounts.shell(`umount ${point}`)
    await using node = await start(store)
    await watchesWithout(node, /is gone: svc serve has used it.*To start with an empty store instead: rm /)
    const [, note = ''] = /empty store instead: rm (\S+?\.json)/.exec(node.log()) ?? []
    expect(JSON.parse(await mounts.shell(`cat ${note}`))).toEqual({ store })
    const add = `SVC_HOME=${disk} HOME=${disk} SVC_STORE=${store} ${process.execPath} ${entry} users add Bob --role Admin --no-password 2>&1; echo code $?`
    expect(await mounts.shell(`set +e; ${add}`)).toMatch(/is gone: svc serve has used it.*code 12\n$/s)
    expect(await mounts.shell(`ls -A ${point}`)).toBe('')
    await mounts.shell(mount)
    await usesIt(node)
    expect(await node.stop()).toBe(0)
    // Who wants an empty store removes the note.
    await mounts.shell(`umount ${point} && rm ${note}`)
    await using empty = await start(store)
    expect(await statusOf(empty, '/readyz')).toBe(200)
  })
})
