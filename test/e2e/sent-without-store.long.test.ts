import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, test } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { ask, type ServeNode, signIn } from '../support/program/serve-node.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'
import { maxMs, outlivesTheProcess } from './sent-without-store.ts'

suiteWith(mountNamespaceMissing, 'W23 what a server sends while the disk of its store is full', () => {
  let mounts: MountNamespace
  beforeAll(async () => {
    mounts = await startMountNamespace()
  })
  afterAll(async () => await mounts.remove())

  /** A disk in memory that is full from `fill` to `free`. */
  async function diskNamed(name: string) {
    const disk = join(mounts.folder, name)
    const store = join(disk, 'store', 'svc.db')
    await mounts.shell(`mkdir ${disk} && mount -t tmpfs -o size=3m,mode=700 none ${disk}`)
    let endReader = async (): Promise<void> => {}
    return {
      store,
      fill: async (node: ServeNode): Promise<void> => {
        // Somebody who reads, without whom SQLite would go on in the room that its log already has.
        const [program, args] = mounts.command(process.execPath, [
          '-e',
          `const d = new (require('node:sqlite').DatabaseSync)(${JSON.stringify(store)})
           d.exec('BEGIN'); d.prepare('SELECT count(*) FROM sqlite_master').get()
           process.stdin.once('data', () => { d.close(); process.exit() }); console.log('reads')`,
        ])
        const reader = spawn(program, [...args], { stdio: ['pipe', 'pipe', 'inherit'] })
        await once(reader.stdout, 'data')
        endReader = async () => {
          const ended = once(reader, 'exit')
          reader.stdin.end('end')
          await ended
        }
        await mounts.shell(`dd if=/dev/zero of=${disk}/filler bs=4k 2> /dev/null || true`)
        await until(async () => {
          await signIn(node)
          return (await ask(`${node.url}/readyz`)).status === 503
        }, maxMs)
      },
      free: async (): Promise<void> => {
        await endReader()
        await mounts.shell(`rm ${disk}/filler`)
      },
    }
  }

  test.concurrent.for(['SIGTERM', 'SIGKILL'] as const)(
    'W23 ends once for its receivers although %s ends the server before there is room again',
    { timeout: maxMs },
    async (signal, { onTestFinished }) => {
      const { store, fill, free } = await diskNamed(signal)
      const [program, args] = mounts.command('env', [])
      await outlivesTheProcess({
        signal,
        store,
        command: [program, ...args],
        away: async (node) => {
          if (node) await fill(node)
        },
        back: free,
        onEnd: onTestFinished,
      })
    },
  )
})
