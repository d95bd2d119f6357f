import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { localDisks } from '../../../src/core/base/system/disks.ts'
import { parseMountinfo, readOnlyInFstab, readText } from '../../../src/core/base/system/files.ts'
import {
  baseOf,
  type CpuSample,
  cgroupFolders,
  cpuQuota,
  cpuSample,
  keep,
  measureState,
  memory,
  memoryLimit,
  ownLimits,
  serverState,
  stateMeter,
  usedPercent,
  within,
} from '../../../src/core/base/system/resources.ts'
import { processorMs } from '../../support/suite/processor-time.ts'

const MiB = 2 ** 20
const now = (): number => performance.now()
/** Files that exist only in the test: what the kernel of a container would show. */
const tree =
  (files: Readonly<Record<string, string>>) =>
  (path: string): string | undefined =>
    files[path]

const v2Mounts = '35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate'
const v1Mounts = [
  '34 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:15 - cgroup cgroup rw,cpu,cpuacct',
  '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
].join('\n')

describe('the memory that this process may use', () => {
  test('H4 a version 2 limit counts, and reclaimable page cache is available', () => {
    const read = tree({
      '/proc/self/cgroup': '0::/\n',
      '/proc/self/mountinfo': v2Mounts,
      '/sys/fs/cgroup/memory.max': `${512 * MiB}\n`,
      '/sys/fs/cgroup/memory.current': `${300 * MiB}\n`,
      '/sys/fs/cgroup/memory.stat': `anon 1\nactive_file 7\ninactive_file ${100 * MiB}\n`,
    })
    expect(ownLimits(read).memory()).toEqual({ limit: 512 * MiB, available: 312 * MiB })
  })

  test('H4 the tightest limit of all parent groups applies, and `max` is none', () => {
    const folders = { version: 2 as const, folders: ['/g/a/b', '/g/a', '/g'] }
    const read = tree({
      '/g/a/b/memory.max': 'max\n',
      '/g/a/b/memory.current': '10\n',
      '/g/a/memory.max': '1000\n',
      '/g/a/memory.current': '400\n',
      '/g/memory.max': '4000\n',
      '/g/memory.current': '3900\n',
    })
    expect(memoryLimit(folders, read)).toEqual({ limit: 1000, available: 100 })
    expect(memoryLimit({ version: 2, folders: ['/g/a/b'] }, read)).toBeUndefined()
  })

  test('H4 a version 1 limit counts, and its number near 2^63 is none', () => {
    const read = tree({
      '/proc/self/cgroup': '5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/\n',
      '/proc/self/mountinfo': v1Mounts,
      '/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes': `${256 * MiB}\n`,
      '/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes': `${200 * MiB}\n`,
      '/sys/fs/cgroup/memory/docker/abc/memory.stat': `inactive_file 1\ntotal_inactive_file ${50 * MiB}\n`,
      '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
      '/sys/fs/cgroup/memory/memory.usage_in_bytes': '1\n',
    })
    expect(ownLimits(read).memory()).toEqual({ limit: 256 * MiB, available: 106 * MiB })
  })

  test('H4 a limit above the memory of the machine changes nothing, a tighter one is the total', () => {
    const machine = { total: 1000, available: 300 }
    expect(within(machine, undefined)).toEqual(machine)
    expect(within(machine, { limit: 1000, available: 900 })).toEqual(machine)
    expect(within(machine, { limit: 500, available: 400 })).toEqual({ total: 500, available: 300 })
    expect(within(machine, { limit: 500, available: 20 })).toEqual({ total: 500, available: 20 })
  })

  test('H4 limits that cannot be read for a moment are found afterwards', () => {
    const read = tree({
      '/proc/self/cgroup': '0::/\n',
      '/proc/self/mountinfo': v2Mounts,
      '/sys/fs/cgroup/memory.max': `${512 * MiB}\n`,
      '/sys/fs/cgroup/memory.current': `${300 * MiB}\n`,
      '/sys/fs/cgroup/cpu.max': '50000 100000\n',
      '/sys/fs/cgroup/cpu.stat': 'usage_usec 7000000\n',
    })
    for (const lost of ['/proc/self/cgroup', '/proc/self/mountinfo']) {
      let short = true
      const limits = ownLimits((path) => (short && path === lost ? undefined : read(path)))
      expect([limits.memory(), limits.cpu()]).toEqual([undefined, undefined])
      short = false
      expect(limits.cpu()).toEqual({ processors: 0.5, usedMs: 7000 })
      expect(limits.memory()).toEqual({ limit: 512 * MiB, available: 212 * MiB })
    }
  })

  test('on systems other than Linux nothing limits it', () => {
    const none = ownLimits(() => undefined)
    expect([none.memory(), none.cpu()]).toEqual([undefined, undefined])
  })
})

describe('the cgroup folders', () => {
  const mounts = (line: string) => parseMountinfo(line)

  test('inside a namespace only the root is visible', () => {
    expect(cgroupFolders('memory', '0::/\n', mounts(v2Mounts))).toEqual({ version: 2, folders: ['/sys/fs/cgroup'] })
  })

  test('nested groups are listed from the own one up to the root of the mount', () => {
    expect(cgroupFolders('cpu', '0::/system.slice/svc.service', mounts(v2Mounts))?.folders).toEqual([
      '/sys/fs/cgroup/system.slice/svc.service',
      '/sys/fs/cgroup/system.slice',
      '/sys/fs/cgroup',
    ])
  })

  test('a container without its own namespace sees the host’s path as the root of its mount', () => {
    const bound = '35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory'
    expect(cgroupFolders('memory', '9:memory:/docker/abc', mounts(bound))?.folders).toEqual(['/sys/fs/cgroup/memory'])
  })

  test('a path outside the mount is not followed', () => {
    expect(cgroupFolders('memory', '0::/../../etc', mounts(v2Mounts))?.folders).toEqual(['/sys/fs/cgroup'])
  })

  test('a controller that is not mounted limits nothing', () => {
    expect(cgroupFolders('memory', '5:memory:/a\n', mounts('1 1 8:1 / / rw - ext4 /dev/sda1 rw'))).toBeUndefined()
  })
})

describe('the processors that this process may use', () => {
  test('H4 cpu.max of version 2, the tightest of all groups', () => {
    const read = tree({
      '/g/a/cpu.max': '150000 100000\n',
      '/g/a/cpu.stat': 'usage_usec 2500000\nuser_usec 1\n',
      '/g/cpu.max': '400000 100000\n',
      '/g/cpu.stat': 'usage_usec 9000000\n',
    })
    const quota = cpuQuota({ version: 2, folders: ['/g/a', '/g'] }, undefined, read)
    expect(quota).toEqual({ processors: 1.5, usedMs: 2500 })
    expect(cpuQuota({ version: 2, folders: ['/g/none'] }, undefined, read)).toBeUndefined()
    const open = tree({ '/g/cpu.max': 'max 100000\n', '/g/cpu.stat': 'usage_usec 1\n' })
    expect(cpuQuota({ version: 2, folders: ['/g'] }, undefined, open)).toBeUndefined()
  })

  test('H4 the quota of version 1, with the time from its own accounting', () => {
    const read = tree({
      '/proc/self/cgroup': '4:cpu,cpuacct:/docker/abc\n',
      '/proc/self/mountinfo': v1Mounts,
      '/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us': '50000\n',
      '/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us': '100000\n',
      '/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpuacct.usage': '7000000000\n',
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '-1\n',
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
    })
    expect(ownLimits(read).cpu()).toEqual({ processors: 0.5, usedMs: 7000 })
  })
})

describe('CPU use', () => {
  const sample = (at: number, more: Partial<CpuSample> = {}): CpuSample => ({
    at,
    busy: 0,
    idle: 0,
    processors: 2,
    own: 0,
    ...more,
  })

  test('is the busy time between two samples, not since the machine started', () => {
    const before = sample(0, { busy: 900_000, idle: 100_000 })
    expect(usedPercent(before, sample(1_000, { busy: 900_500, idle: 101_500 }))).toBe(25)
  })

  test('in a window below 500 ms the own time is subtracted, from 500 ms on it is not', () => {
    const before = sample(0)
    expect(usedPercent(before, sample(499, { busy: 400, idle: 600, own: 300 }))).toBe(10)
    expect(usedPercent(before, sample(500, { busy: 400, idle: 600, own: 300 }))).toBe(40)
    // The own time is exact and the machine's is counted in ticks: it never becomes negative.
    expect(usedPercent(before, sample(100, { busy: 20, idle: 180, own: 30 }))).toBe(0)
  })

  test('H4 inside a quota it is a share of the quota', () => {
    const before = sample(0, { quota: { processors: 0.5, usedMs: 100 } })
    const after = sample(1_000, { busy: 2_000, quota: { processors: 0.5, usedMs: 350 } })
    expect(usedPercent(before, after)).toBe(50)
    // A quota above the machine is bounded by the machine.
    const wide = sample(1_000, { quota: { processors: 64, usedMs: 1_100 } })
    expect(usedPercent(sample(0, { quota: { processors: 64, usedMs: 100 } }), wide)).toBe(50)
  })

  test('is omitted when no time was counted at all', () => {
    expect(usedPercent(sample(0), sample(1))).toBeUndefined()
  })

  test('includes work that is really done', () => {
    const before = cpuSample(now, undefined)
    // Until the kernel has counted half a second of it, however long a busy machine takes.
    const end = processorMs() + 500
    while (processorMs() < end) Math.sqrt(end)
    const after = cpuSample(now, undefined)
    const own = after.own - before.own
    expect(own).toBeGreaterThan(400)
    // The machine has done this work, and that of others.
    expect(usedPercent(before, after)).toBeGreaterThan((100 * own * 0.8) / ((after.at - before.at) * after.processors))
  })

  test('covers the run when that was long enough, else the latest sample that is 500 ms old', () => {
    const samples = [sample(0), sample(300), sample(900)]
    expect(baseOf(samples, sample(1_000), sample(1_500)).at).toBe(1_000)
    expect(baseOf(samples, sample(1_000), sample(1_010)).at).toBe(300)
    expect(baseOf([sample(990)], sample(1_000), sample(1_010)).at).toBe(990)
  })

  test('keeps few samples however often it is requested', () => {
    let samples: readonly CpuSample[] = [sample(0)]
    for (let at = 1; at <= 20_000; at += 1) samples = keep(samples, sample(at))
    expect(samples.length).toBeLessThanOrEqual(8)
    expect(20_000 - (samples[0]?.at ?? 0)).toBeGreaterThanOrEqual(500)
  })
})

describe('server state', () => {
  test('H4 a megabyte is 2^20 bytes, percent has one decimal', () => {
    expect(serverState('box', { total: 2048 * MiB, available: 100.6 * MiB }, 12.3)).toEqual({
      ServerName: 'box',
      TotalRamInMb: 2048,
      AvailableRamInMb: 101,
      UsedCpuPercent: 12.3,
    })
    expect(serverState('box', { total: MiB, available: MiB }, undefined)).not.toHaveProperty('UsedCpuPercent')
  })

  test('H4 the values are those of /proc', async () => {
    const end = measureState(now)
    await pause(550)
    const state = end()
    const meminfo = readFileSync('/proc/meminfo', 'utf8')
    const kibibytes = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(meminfo)?.[1])
    expect(state.ServerName).toBe(hostname())
    const total = kibibytes('MemTotal') / 1024
    const limit = (ownLimits(readText).memory()?.limit ?? Number.POSITIVE_INFINITY) / MiB
    expect(state.TotalRamInMb).toBeCloseTo(Math.min(total, limit), -1)
    if (limit > total) expect(state.AvailableRamInMb).toBeCloseTo(kibibytes('MemAvailable') / 1024, -3)
    expect(state.AvailableRamInMb).toBeLessThan(state.TotalRamInMb ?? 0)
    expect(state.UsedCpuPercent).toBeGreaterThanOrEqual(0)
    expect(state.UsedCpuPercent).toBeLessThanOrEqual(100)
  })

  test('H4 a permanent meter has a value for a run of no length', async () => {
    const meter = stateMeter(now)
    await pause(120)
    const figures = [meter()().UsedCpuPercent, meter()().UsedCpuPercent]
    expect(figures).toEqual([expect.any(Number), expect.any(Number)])
  })

  test('H4 runs within a second share a measurement, and one that begins or ends later makes another', () => {
    let at = 0
    const meter = stateMeter(() => at)
    const stateAfter = (begin: number, end: number): object => {
      at = begin
      const measured = meter()
      at = end
      return measured()
    }
    const first = stateAfter(10, 20)
    expect(stateAfter(30, 1_019)).toBe(first)
    const second = stateAfter(1_018, 1_020)
    expect(second).not.toBe(first)
    expect(stateAfter(1_021, 2_019)).toBe(second)
    expect(stateAfter(2_021, 2_021)).not.toBe(second)
  })

  test('memory of this machine is plausible', () => {
    const { total, available } = memory(ownLimits(readText).memory())
    expect(available).toBeGreaterThan(0)
    expect(available).toBeLessThanOrEqual(total)
  })
})

describe('the local file systems', () => {
  const mountinfo = [
    '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
    '28 27 254:0 /var/lib/x /srv/bind rw,relatime - ext4 /dev/vda rw',
    '29 27 8:17 / /data\\040disk rw,relatime - xfs /dev/sdb1 rw',
    '30 27 8:33 / /mnt/ro ro,relatime - ext4 /dev/sdc1 rw',
    '31 27 8:49 / /mnt/failed rw,relatime - ext4 /dev/sdd1 ro',
    '32 27 0:25 / /tmp rw - tmpfs tmpfs rw',
    '33 27 0:40 / /mnt/nfs rw - nfs4 server:/export rw',
    '34 27 0:41 / /mnt/smb rw - cifs //server/share rw',
    '35 27 0:42 / /mnt/9p rw - 9p host rw',
    '36 27 0:43 / /mnt/ssh rw - fuse.sshfs you@there: rw',
    '37 27 7:1 / /snap/core ro - squashfs /dev/loop1 ro',
    '38 27 0:50 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,lowerdir=/a',
  ].join('\n')

  test('are listed once each, without those that could hang on a peer or that are images', () => {
    expect(localDisks(parseMountinfo(mountinfo))).toEqual([
      { type: 'ext4', points: ['/', '/srv/bind'], isReadOnly: false },
      { type: 'xfs', points: ['/data disk'], isReadOnly: false },
      { type: 'ext4', points: ['/mnt/ro'], isReadOnly: false },
      { type: 'ext4', points: ['/mnt/failed'], isReadOnly: true },
    ])
  })

  test('in memory count if they are named', () => {
    const memory = '30 25 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=65536k'
    expect(localDisks(parseMountinfo(memory))).toEqual([])
    expect(localDisks(parseMountinfo(memory), new Set(), ['/dev/shm'])).toMatchObject([{ points: ['/dev/shm'] }])
  })

  test('are left out if /etc/fstab mounts them read-only', () => {
    const fstab = ['/dev/sdc1 /mnt/ro ext4 ro 0 2', '/dev/sdd1  /mnt/failed  ext4  noatime,ro', ''].join('\n')
    const points = localDisks(parseMountinfo(mountinfo), readOnlyInFstab(fstab)).flatMap((disk) => disk.points)
    expect(points).toEqual(['/', '/srv/bind', '/data disk'])
  })

  test('are read-only where the kernel keeps `rw` and names the error otherwise', () => {
    const stopped = (option: string) => `1 0 8:1 / / rw - ext4 /dev/sda1 rw,${option}`
    for (const option of ['emergency_ro', 'shutdown'])
      expect(localDisks(parseMountinfo(stopped(option)))).toMatchObject([{ isReadOnly: true }])
    expect(localDisks(parseMountinfo(stopped('errors=remount-ro')))).toMatchObject([{ isReadOnly: false }])
  })

  test('of a container are left out if the container mounts them read-only', () => {
    const container = [
      '500 400 0:90 / / rw - overlay overlay rw,lowerdir=/l',
      '501 500 8:1 / /config ro - ext4 /dev/sda1 ro',
      '502 500 8:2 / /data rw - ext4 /dev/sdb1 ro',
      '503 500 8:3 / /var/lib/containerd/x rw - ext4 /dev/sdc1 ro',
    ].join('\n')
    expect(localDisks(parseMountinfo(container))).toEqual([
      { type: 'overlay', points: ['/'], isReadOnly: false },
      { type: 'ext4', points: ['/data'], isReadOnly: true },
    ])
  })

  test('a container’s own disk is the overlay at /, and its bound files are candidates of one file system', () => {
    const container = [
      '500 400 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u',
      '501 500 8:1 /docker/containers/x/hosts /etc/hosts rw - ext4 /dev/sda1 rw',
      '502 500 8:1 /docker/volumes/data /var/lib/data rw - ext4 /dev/sda1 rw',
    ].join('\n')
    expect(localDisks(parseMountinfo(container))).toEqual([
      { type: 'overlay', points: ['/'], isReadOnly: false },
      { type: 'ext4', points: ['/etc/hosts', '/var/lib/data'], isReadOnly: false },
    ])
  })

  test('of several mounts at one point the last is the visible one', () => {
    const covered = '1 0 8:1 / /data rw - ext4 /dev/a rw\n2 1 8:2 / /data rw - xfs /dev/b rw'
    expect(parseMountinfo(covered).map((mount) => mount.type)).toEqual(['xfs'])
  })

  test('invalid lines are skipped', () => {
    expect(parseMountinfo('\nnonsense\n1 2 3\n1 2 8:1 / /x rw - \n')).toEqual([])
  })
})
