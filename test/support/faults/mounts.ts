import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { findProgram } from '../servers/server.ts'

const unshare = findProgram('unshare') ?? ''
const root = process.getuid?.() === 0
/** Mounting needs root, and a kernel that lets it mount. */
export const mountsMissing =
  process.platform !== 'linux' || !root
    ? 'mounting needs root on Linux'
    : !existsSync('/dev/loop-control') || spawnSync('sh', ['-c', 'mkfs.ext4 -V && unshare -m true']).status !== 0
      ? 'there is no loop device, mkfs.ext4 or unshare: mounting needs root and a kernel that allows it'
      : undefined

const child = new URL('../engine/kind-child.ts', import.meta.url).pathname

/** Shell lines that mount a new ext4 file system of 8 MiB at a folder, which they make. */
const mountAt = (folder: string): string => `
  mkdir -p ${folder}
  truncate -s 8M ${folder}.img
  mkfs.ext4 -q ${folder}.img
  mount -o loop,errors=remount-ro ${folder}.img ${folder}`

/** Shell lines that plant a fault in a file system at a folder. */
export const mountFaults = {
  none: mountAt,
  /** The kernel meets an error in the file system and makes it read-only, as after an error of the disk. */
  errorOfTheDisk: (folder: string): string => `${mountAt(folder)}
  device=$(basename $(findmnt -n -o SOURCE ${folder}))
  echo 1 > /sys/fs/ext4/$device/trigger_fs_error
  # The kernel makes it read-only in its own time.
  for round in $(seq 100); do grep -qE "${folder} .* (ro|.*,emergency_ro)" /proc/self/mountinfo && break; sleep 0.05; done`,
  /** Somebody remounts it read-only, and forgets to undo that. */
  remountedReadOnly: (folder: string): string => `${mountAt(folder)}
  mount -o remount,ro ${folder}`,
  /** As in the sandbox of a service with ProtectSystem=strict: its view is read-only, the file system is not. */
  sandboxed: (folder: string): string => `${mountAt(folder)}
  mount -o remount,bind,ro ${folder}`,
  /** No space is left. */
  full: (folder: string): string => `${mountAt(folder)}
  dd if=/dev/zero of=${folder}/filler bs=64k 2> /dev/null || true`,
  /** A file system in memory without space, as of /run or /dev/shm. */
  fullInMemory: (folder: string): string => `
  mkdir -p ${folder}
  mount -t tmpfs -o size=256k none ${folder}
  dd if=/dev/zero of=${folder}/filler bs=64k 2> /dev/null || true`,
  /** No inodes are left. */
  withoutInodes: (folder: string): string => `${mountAt(folder)}
  touch $(seq -f ${folder}/%g 3000) 2> /dev/null || true`,
  /** Another mount covers the folder above the mount point. */
  hidden: (folder: string): string => `${mountAt(`${folder}/below`)}
  mount -t tmpfs none ${folder}`,
  /** Only root may enter the folder above the mount point. */
  unreachable: (folder: string): string => `${mountAt(`${folder}/below`)}
  chmod 700 ${folder}`,
} as const
export type MountFault = keyof typeof mountFaults

/** The results of the kind process for a process that waits for a frozen file system, as for a disk that does not answer. */
export function resultsOfStuckProcess(): readonly Result[] {
  const own = mkdtempSync(join(tmpdir(), 'svc-stuck-'))
  const folder = join(own, 'data')
  const lines = `set -e
  mount --make-rprivate /
  ${mountAt(folder)}
  cp /usr/bin/touch ${own}/svc-stuck
  fsfreeze --freeze ${folder}
  ${own}/svc-stuck ${folder}/file &
  stuck=$!
  for round in $(seq 100); do grep -q '^State:.D' /proc/$stuck/status && break; sleep 0.05; done
  ${process.execPath} ${child} process '{"executable":"svc-stuck"}' || failed=$?
  fsfreeze --unfreeze ${folder}
  wait
  exit $failed`
  try {
    const { stdout, stderr, status } = spawnSync(unshare, ['-m', 'sh', '-c', lines], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    if (status !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as readonly Result[]
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

/**
 * The results of the kind host for a file system with this fault, in mounts that nobody else sees and that end with the
 * run. The file system is at `folder`, or below it.
 */
export function hostWithMount(fault: MountFault, { asNobody = false, fstab = '' } = {}) {
  const own = mkdtempSync(join(tmpdir(), 'svc-mounts-'))
  const folder = join(own, 'data')
  const account = asNobody ? 'setpriv --reuid 65534 --regid 65534 --clear-groups' : ''
  const lines = `set -e
  mount --make-rprivate /
  chmod 755 ${own}
  ${mountFaults[fault](folder)}
  printf '%s' "${fstab.replaceAll('DATA', folder)}" > ${own}/fstab
  touch /etc/fstab
  mount --bind ${own}/fstab /etc/fstab
  exec ${account} ${process.execPath} ${child} host`
  try {
    const options = { encoding: 'utf8', timeout: 60_000 } as const
    const { stdout, stderr, status } = spawnSync(unshare, ['-m', 'sh', '-c', lines], options)
    if (status !== 0) throw new Error(stderr)
    return { folder, results: JSON.parse(stdout) as readonly Result[] }
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}
