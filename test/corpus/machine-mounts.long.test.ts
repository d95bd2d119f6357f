import { mkdirSync, rmSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { folderWith } from '../support/faults/folder-faults.ts'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { type MountFault, mountFaults, mountsMissing } from '../support/faults/mounts.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const kernel = process.platform === 'linux' ? `Linux ${release().replace(/[^0-9.].*/, '')}` : process.platform

/** Settings that ignore the other work of the test machine, which has nothing to do with its file systems. */
const busy = {
  cpu: { warn: 100 },
  load: { warn: 1_000 },
  memory: { warn: 0.1 },
  restarted: { warn: '0s' },
  swap: 'off',
  zombies: 'off',
}
const data = '/mnt/data'
const hostOf = (): Readonly<Record<string, unknown>> => ({ kind: 'host', ...busy, disks: [data] })
const askDisk = (): readonly PeerProgram[] => [
  { program: 'check_disk', args: ['-w', '20%', '-c', '10%', '-W', '10%', '-K', '2%', '-p', data] },
]

/** A file system with this fault. */
const mounted = (fault: MountFault) => async (mounts: MountNamespace) => {
  await mounts.shell(mountFaults[fault](data))
  return async () => void (await mounts.shell(`umount -l ${data}; rm -f ${data}.img`))
}
const fileSystem = (fault: MountFault): Pick<Row<MountNamespace>, 'monitor' | 'plant' | 'peers'> => ({
  monitor: hostOf,
  plant: mounted(fault),
  peers: askDisk,
})

corpus<MountNamespace>({
  server: `file systems of ${kernel}`,
  missing: mountsMissing ?? mountNamespaceMissing,
  start: async () => {
    const mounts = await startMountNamespace()
    await mounts.shell('mount -t tmpfs none /mnt')
    return mounts
  },
  mounts: (mounts) => mounts,
  rows: [
    { fault: 'healthy', ...fileSystem('none'), expected: { state: 'healthy' } },
    {
      fault: 'the file system is full',
      ...fileSystem('full'),
      expected: fails(`disk ${data}`, 'threshold', /^0 % free/),
    },
    {
      fault: 'a file system in memory is full',
      ...fileSystem('fullInMemory'),
      expected: fails(`disk ${data}`, 'threshold', /^0 % free/),
    },
    {
      fault: 'the file system is out of inodes',
      ...fileSystem('withoutInodes'),
      expected: fails(`inodes ${data}`, 'threshold', /^0 % free/),
    },
    {
      fault: 'the file system was remounted read-only',
      ...fileSystem('remountedReadOnly'),
      expected: warns(`disk ${data}`, /read-only, and the kernel has counted no error; \d/),
      before: 'healthy: the file system vanished from the results',
    },
    {
      fault: 'the kernel made the file system read-only after an error',
      ...fileSystem('errorOfTheDisk'),
      expected: fails(`disk ${data}`, 'data', /read-only/),
      before: 'healthy: the file system vanished from the results',
    },
    {
      fault: 'nothing is mounted at the mount point',
      monitor: hostOf,
      plant: async (mounts) => {
        await mounts.shell(`mkdir -p ${data}`)
        return undefined
      },
      expected: fails(`disk ${data}`, 'any', /mounted/),
      peers: askDisk,
    },
  ],
})

const lockedDisk = 'disk /mnt/locked/data'
/** A file system in a folder that only root may enter. */
const behindLock = async (mounts: MountNamespace) => {
  await mounts.shell(`mount -t tmpfs -o mode=755 none /mnt && mkdir -m 700 /mnt/locked && mkdir /mnt/locked/data
    truncate -s 16M /mnt/disk.img && mkfs.ext2 -q /mnt/disk.img && mount -o loop /mnt/disk.img /mnt/locked/data`)
  return async () => void (await mounts.shell('umount -l /mnt/locked/data; umount -l /mnt'))
}

/** The list of the kernel, with other swap space, in mounts of its own: this machine may have none. */
const swapOf =
  (total: number, free: number) =>
  async ({ shell, folder }: MountNamespace) => {
    await shell(`sed 's/^SwapTotal:.*/SwapTotal: ${total} kB/; s/^SwapFree:.*/SwapFree: ${free} kB/' /proc/meminfo > ${folder}/meminfo
      mount --bind ${folder}/meminfo /proc/meminfo`)
    return async () => void (await shell('umount /proc/meminfo'))
  }

corpus<MountNamespace>({
  server: `swap space of ${kernel} (simulated in /proc/meminfo)`,
  missing: mountNamespaceMissing,
  start: async () => {
    const mounts = await startMountNamespace()
    await mounts.shell(`mount -t tmpfs none /mnt && mkdir ${data} && mount -t tmpfs none ${data}`)
    return mounts
  },
  mounts: (mounts) => mounts,
  rows: [
    {
      fault: 'healthy',
      monitor: () => ({ ...hostOf(), swap: { warn: '20%', limit: '10%' } }),
      plant: swapOf(2_097_152, 1_048_576),
      expected: { state: 'healthy' },
    },
    {
      fault: 'healthy, without swap space',
      monitor: () => ({ ...hostOf(), swap: { warn: '20%', limit: '10%' } }),
      plant: swapOf(0, 0),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the swap space is nearly full',
      monitor: () => ({ ...hostOf(), swap: { warn: '20%', limit: '10%' } }),
      plant: swapOf(2_097_152, 104_858),
      expected: fails('swap', 'threshold', /^[45](?:\.\d)? % free of 2 GiB/),
      peers: () => [{ program: 'check_swap', args: ['-w', '20%', '-c', '10%'] }],
    },
  ],
})

/** root reads every folder, so another account runs svc: in a process of its own. */
corpus<MountNamespace>({
  server: `folders that the account may not read, ${kernel}`,
  missing: mountNamespaceMissing,
  start: startMountNamespace,
  mounts: (mounts) => ({ ...mounts, run: (yaml, mode, host) => mounts.runAs(65_534, yaml, mode, host) }),
  rows: [
    {
      fault: 'healthy',
      monitor: ({ folder }) => ({ kind: 'file-age', path: join(folder, 'drop') }),
      plant: async ({ folder }) => folderWith(join(folder, 'drop'), 1),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the folder cannot be read',
      monitor: ({ folder }) => ({ kind: 'file-age', path: join(folder, 'locked') }),
      plant: async ({ folder }) => {
        mkdirSync(join(folder, 'locked'), { mode: 0o700 })
        return () => rmSync(join(folder, 'locked'), { recursive: true })
      },
      expected: fails('there', 'data', /locked is not accessible to this account/),
    },
    {
      fault: 'the mount point of a disk may not be reached',
      monitor: () => ({ kind: 'host', ...busy, skipDisks: ['/elsewhere'] }),
      plant: behindLock,
      expected: warns(lockedDisk, /may not reach the mount point: .*chmod o\+x/),
    },
    {
      fault: 'the mount point of a disk that svc.yaml names may not be reached',
      monitor: () => ({ kind: 'host', ...busy, disks: ['/mnt/locked/data'] }),
      plant: behindLock,
      expected: notChecked(lockedDisk, /may not reach the mount point: .*chmod o\+x/),
      before: 'warning, exit code 0',
    },
    {
      fault: 'the system hides the processes of other accounts (hidepid)',
      monitor: () => ({ kind: 'process', match: 'sleep infinity' }),
      plant: async (mounts) => {
        await mounts.shell('mount -t proc -o hidepid=invisible proc /proc')
        return async () => void (await mounts.shell('umount /proc'))
      },
      expected: notChecked('running', /mounted with hidepid=invisible/, { never: /not running/ }),
      before: 'unhealthy: not running',
    },
    {
      fault: 'the system hides the processes of other accounts, and one is not to run',
      monitor: () => ({ kind: 'process', match: 'sleep infinity', running: false }),
      plant: async (mounts) => {
        await mounts.shell('mount -t proc -o hidepid=invisible proc /proc')
        return async () => void (await mounts.shell('umount /proc'))
      },
      expected: notChecked('running', /mounted with hidepid=invisible/),
    },
  ],
})
