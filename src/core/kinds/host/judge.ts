import { atLeast, atMost, type Broken, evaluateBroken, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import type { ClockReading } from '../../net/sntp.ts'
import type { Threshold, Values } from '../../settings/index.ts'
import type { Disk, SilentDisk } from '../../system/disks.ts'
import { fileTrouble } from '../../system/files.ts'
import type { Memory } from '../../system/memory.ts'
import { evaluateFree } from './free-space.ts'
import { evaluateTrend, type Trend } from './trend.ts'

export const hostSettings = {
  disk: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 20, limit: 10 },
    doc: 'Free space of every writable local file system',
  },
  diskTrend: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 24 * 3_600_000 },
    doc: 'How long until one of them is full, if it goes on filling as in the Advanced runs before',
  },
  disks: { type: 'texts', default: [], doc: 'Look only at these mount points; one that is not mounted is a failure' },
  skipDisks: { type: 'texts', default: [], doc: 'Mount points to leave out' },
  inodes: { type: 'threshold', unit: 'percent', default: { warn: 10 }, doc: 'Free inodes of the same file systems' },
  memory: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 10 },
    doc: 'Available memory, of the container inside one',
  },
  cpu: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80 },
    doc: 'Processor use over half a second; only ever warns',
  },
  load: {
    type: 'threshold',
    unit: 'ratio',
    default: { warn: 2 },
    doc: 'Load of one minute per processor; only ever warns',
  },
  clock: {
    type: 'group',
    doc: 'Compares the clock with a time server; left out without one',
    fields: {
      reference: { type: 'text', required: true, doc: 'Time server (NTP), host or host:port' },
      offset: {
        type: 'threshold',
        unit: 'duration',
        default: { warn: 50, limit: 1_000 },
        doc: 'How far the clock may be off, either way',
      },
    },
  },
  fileDescriptors: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 70, limit: 90 },
    doc: 'Open files of the machine, of those that the kernel allows (Linux)',
  },
  restarted: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 600_000 },
    doc: 'How long the machine should have been up',
  },
} as const
export type HostSettings = Values<typeof hostSettings>

/** What the machine said; judged apart. Memory and disks in bytes, times in milliseconds. */
export type HostSeen =
  | { readonly see: 'uptime'; readonly ms: number }
  | { readonly see: 'disk'; readonly disk: Disk | SilentDisk }
  | { readonly see: 'trend'; readonly mount: string; readonly trend: Trend }
  | { readonly see: 'not mounted'; readonly mount: string }
  | { readonly see: 'memory'; readonly memory: Memory }
  | { readonly see: 'cpu'; readonly percent: number; readonly ms: number }
  | { readonly see: 'load'; readonly load: number; readonly processors: number }
  | { readonly see: 'clock'; readonly reading: ClockReading; readonly address: string }
  | { readonly see: 'descriptors'; readonly open: number; readonly max: number }
  | { readonly see: 'since start'; readonly ms: number }
  | Broken

export function evaluateHost(seen: HostSeen, settings: HostSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'uptime':
      return ok('uptime', `up ${showDuration(seen.ms)}`, { measurement: { value: seen.ms, unit: 'milliseconds' } })
    case 'disk':
      return evaluateDisk(seen.disk, settings)
    case 'trend':
      return evaluateTrend(seen.mount, seen.trend, settings.diskTrend)
    case 'not mounted':
      return fail(`disk ${seen.mount}`, 'data', 'no writable local file system is mounted there')
    case 'memory':
      return evaluateFree('memory', 'available', seen.memory, settings.memory)
    case 'cpu':
      return onlyWarns({
        check: 'cpu',
        what: `in use over ${showDuration(seen.ms)}:`,
        value: seen.percent,
        unit: 'percent',
        threshold: settings.cpu,
      })
    case 'load':
      return onlyWarns({
        check: 'load',
        what: `${seen.load.toFixed(2)} over 1 min, per processor`,
        value: seen.load / seen.processors,
        unit: 'ratio',
        threshold: settings.load,
      })
    case 'clock':
      return evaluateClock(seen.reading, seen.address, settings.clock?.offset ?? {})
    case 'descriptors':
      return atMost({
        check: 'file descriptors',
        what: `${seen.open} open of ${seen.max < 2 ** 53 ? seen.max : 'any number'}:`,
        value: (seen.open / seen.max) * 100,
        unit: 'percent',
        threshold: settings.fileDescriptors,
      })
    case 'since start':
      return atLeast({
        check: 'restarted',
        what: 'up',
        value: seen.ms,
        unit: 'duration',
        threshold: settings.restarted,
      })
    case 'broken':
      return evaluateBroken(seen)
  }
}

function evaluateDisk(disk: Disk | SilentDisk, settings: HostSettings): Result | readonly Result[] {
  const check = `disk ${disk.mount}`
  if ('error' in disk) return fail(check, 'internal', `the file system ${fileTrouble(disk.error)}`)
  const space = evaluateFree(check, 'free', disk, settings.disk)
  if (!disk.inodes) return space
  const { total, free } = disk.inodes
  return [space, evaluateFree(`inodes ${disk.mount}`, 'free', { total, available: free }, settings.inodes, String)]
}

function evaluateClock({ offset, roundTrip }: ClockReading, address: string, threshold: Threshold): Result {
  const side = offset > 0 ? 'behind' : 'ahead of'
  return atMost({
    check: 'clock',
    what: `${side} ${address} by`,
    value: Math.abs(offset),
    unit: 'duration',
    threshold,
    address,
    details: [`round trip ${showDuration(roundTrip)}: the figure may be off by half of that`],
  })
}

/** A busy machine is not a broken one: whatever the figures, the worst is a warning. */
function onlyWarns(measured: Parameters<typeof atMost>[0]): Result {
  const { warn: low, limit } = measured.threshold
  const bound = low ?? limit
  const judged = atMost({ ...measured, threshold: bound === undefined ? {} : { warn: bound } })
  return judged.status === 'failed' ? warn(judged.check, judged.message, judged) : judged
}
