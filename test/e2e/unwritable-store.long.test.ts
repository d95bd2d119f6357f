import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { ask, figure, type ServeNode, signIn, startNode } from '../support/program/serve-node.ts'
import { entry } from '../support/program/svc.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const ready = async (node: ServeNode): Promise<number> => (await ask(`${node.url}/readyz`)).status
// The tests of this file run at the same time: nearly all of what they take is waiting.

/** Each result is written, whatever it is. */
const watching = `serve: {every: 10s}
types:
  App:
    - {kind: tcp, name: nobody, host: 127.0.0.1, port: 1}
`
/** Longer than the pause between two attempts to write. */
const provenMs = 20_000

suiteWith(mountNamespaceMissing, 'W10 an embedded store that cannot be written', () => {
  let mounts: MountNamespace
  let made = 0
  beforeAll(async () => {
    mounts = await startMountNamespace()
  })
  afterAll(async () => await mounts.remove())

  /** A server whose store has a file system of its own, of so many MB. */
  async function serverOnOwnDisk(
    megabytes: number,
    yaml?: string,
  ): Promise<{ readonly node: ServeNode; readonly folder: string }> {
    made += 1
    const folder = join(mounts.folder, `disk-${made}`)
    const image = `${folder}.img`
    await mounts.shell(`mkdir ${folder} && truncate -s ${megabytes}M ${image} && mkfs.ext4 -q -m 0 ${image}
      mount -o loop ${image} ${folder} && mkdir -m 700 ${folder}/store`)
    const [program, args] = mounts.command('env', [])
    const node = await startNode({
      store: join(folder, 'store', 'svc.db'),
      command: [program, ...args],
      ...(yaml === undefined ? {} : { yaml }),
    })
    return { node, folder }
  }

  test.concurrent('W10 with a full disk the server is not ready after the sign-in that failed, and ready again without any request once there is room', async () => {
    const { node, folder } = await serverOnOwnDisk(12)
    await using _ = node
    expect((await signIn(node)).status).toBe(200)
    expect(await ready(node)).toBe(200)
    await mounts.shell(`dd if=/dev/zero of=${folder}/filler bs=4k 2>/dev/null || true`)
    // Room that the log has already taken is still there for a few.
    const failed = await until(async () => (await signIn(node)).status === 503, 60_000)
    expect(failed).toBe(true)
    expect(await ready(node)).toBe(503)
    expect((await ask(`${node.url}/readyz`)).body).toContain('the disk is full')
    expect(await figure(node, 'svc_store_writable')).toBe(0)
    expect((await ask(`${node.url}/livez`)).status).toBe(200)
    // It stays unready as long as a sign-in would fail.
    for (let second = 0; second < 12; second += 1) {
      expect(await ready(node)).toBe(503)
      await pause(1_000)
    }
    expect((await signIn(node)).status).toBe(503)
    await mounts.shell(`rm ${folder}/filler`)
    await until(async () => (await ready(node)) === 200, provenMs)
    expect((await signIn(node)).status).toBe(200)
    expect(node.log()).toMatch(/"level":"warn"[^\n]*the disk is full; this server is not ready until a write succeeds/)
    expect(node.log()).toMatch(/the store can be written again/)
  }, 180_000)

  test.concurrent('W10 with a full disk a server without requests is not ready from the first write that fails on, and a command ends with 12 and the reason', async () => {
    const { node, folder } = await serverOnOwnDisk(12, watching)
    await using _ = node
    const store = join(folder, 'store', 'svc.db')
    // Until it is in use, the history has no log that could fill.
    await until(async () => (await mounts.shell(`ls ${store}.history || true`)) !== '')
    await mounts.shell(`dd if=/dev/zero of=${folder}/filler bs=4k 2>/dev/null || true`)
    const [reason] = await until(
      () => /[^\n]*(?:is|are) not stored: The store cannot be written[^\n]*/.exec(node.log()) ?? false,
    )
    expect(reason).toContain('the disk is full')
    expect([await ready(node), await figure(node, 'svc_store_writable')]).toEqual([503, 0])
    expect((await ask(`${node.url}/readyz`)).body).toContain('the disk is full')
    const add = `SVC_STORE=${store} ${process.execPath} ${entry} users add Bob --role Admin --no-password 2>&1`
    // The log of the store has room for the first few.
    const refused = await until(async () => {
      const output = await mounts.shell(
        `set +e; ${add.replace('Bob', `Bob-${String(performance.now())}`)}; echo code $?`,
      )
      return output.endsWith('code 0\n') ? false : output
    })
    expect(refused).toMatch(/^Error: The store [^\n]*cannot be written: the disk is full\n[\s\S]*code 12\n$/)
    await mounts.shell(`rm ${folder}/filler`)
    await until(async () => (await ready(node)) === 200, provenMs)
    expect(await figure(node, 'svc_store_writable')).toBe(1)
  }, 180_000)

  test.concurrent('W10 on a file system that has become read-only the server is not ready, and ends with 0 at SIGTERM', async () => {
    const { node, folder } = await serverOnOwnDisk(16)
    await using _ = node
    expect((await signIn(node)).status).toBe(200)
    // As the kernel does after an error of the disk: files that are open for writing do not prevent it.
    await mounts.shell(`mount -o remount,ro,abort ${folder} || mount -o remount,abort ${folder}; true`)
    await until(async () => (await signIn(node)).status === 503)
    expect(await ready(node)).toBe(503)
    await pause(7_000)
    expect(await ready(node)).toBe(503)
    expect(await node.stop()).toBe(0)
  }, 120_000)

  test.concurrent('W10 while another process holds the lock of the store, a server without requests is not ready, and ready again when the lock ends', async () => {
    const { node, folder } = await serverOnOwnDisk(16)
    await using _ = node
    const [program, args] = mounts.command(process.execPath, [
      '-e',
      `const d = new (require('node:sqlite').DatabaseSync)(${JSON.stringify(join(folder, 'store', 'svc.db'))})
       d.exec('BEGIN IMMEDIATE'); process.stdin.once('data', () => { d.exec('ROLLBACK'); process.exit() }); console.log('locked')`,
    ])
    const holder = spawn(program, [...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(holder.stdout, 'data')
    // The sweep notices it.
    await until(async () => (await ready(node)) === 503, 30_000)
    holder.stdin.end('end')
    await once(holder, 'exit')
    await until(async () => (await ready(node)) === 200, provenMs)
  }, 120_000)
})

suiteWith(postgresMissing, 'W10 a database that cannot be written', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres(['max_connections=40'])
  })
  afterAll(async () => await server?.remove())

  test.concurrent('W10 when the database becomes read-only, a server without requests is not ready, and ready again when it can be written', async () => {
    const store = await freshDatabase(server)
    await using node = await startNode({ store })
    expect(await ready(node)).toBe(200)
    const name = new URL(store).pathname.slice(1)
    const readOnly = async (value: string): Promise<void> => {
      await server.query(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`)
      await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
    }
    await readOnly('on')
    await until(async () => (await ready(node)) === 503, 30_000)
    expect((await signIn(node)).status).toBe(503)
    expect((await ask(`${node.url}/readyz`)).body).toContain('read-only at the moment')
    await readOnly('off')
    await until(async () => (await ready(node)) === 200, provenMs)
    expect((await signIn(node)).status).toBe(200)
  }, 120_000)
})
