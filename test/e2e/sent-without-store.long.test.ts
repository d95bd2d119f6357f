import { join } from 'node:path'
import { afterAll, beforeAll, test } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { maxMs, outlivesTheProcess } from './sent-without-store.ts'

suiteWith(mountNamespaceMissing, 'W23 what a server sends while the file system of its store is read-only', () => {
  let mounts: MountNamespace
  beforeAll(async () => {
    mounts = await startMountNamespace()
  })
  afterAll(async () => await mounts.remove())

  test.concurrent.for(['SIGTERM', 'SIGKILL'] as const)(
    'W23 ends once for its receivers although %s ends the server before it can be written again',
    { timeout: maxMs },
    async (signal, { onTestFinished }) => {
      const disk = join(mounts.folder, signal)
      const mount = `mount -o loop ${disk}.img ${disk}`
      await mounts.shell(`mkdir ${disk} && truncate -s 16M ${disk}.img && mkfs.ext4 -q -m 0 ${disk}.img
        ${mount} && mkdir -m 700 ${disk}/store`)
      const [program, args] = mounts.command('env', [])
      await outlivesTheProcess({
        signal,
        store: join(disk, 'store', 'svc.db'),
        command: [program, ...args],
        // As the kernel does after an error of the disk: files that are open for writing do not prevent it.
        away: async (node) => {
          // It stays so until it is mounted anew.
          if (node) await mounts.shell(`mount -o remount,ro,abort ${disk} || mount -o remount,abort ${disk}; true`)
        },
        back: async () => void (await mounts.shell(`umount -l ${disk} && ${mount}`)),
        onEnd: onTestFinished,
      })
    },
  )
})
