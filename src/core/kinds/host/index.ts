import { loadavg, uptime } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { type CheckContext, includes, monitorKind, part } from '../../engine/index.ts'
import { hostPort } from '../../net/connect.ts'
import { askTime, parseReference } from '../../net/sntp.ts'
import { ProbeError } from '../../probe-error.ts'
import { ownLimits } from '../../system/cgroup.ts'
import { cpuSample, cpuWindowMs, usedPercent } from '../../system/cpu.ts'
import { disks } from '../../system/disks.ts'
import { readText } from '../../system/files.ts'
import { preloadSystemInformation } from '../../system/listing.ts'
import { hostMemory } from '../../system/memory.ts'
import { evaluateHost, type HostSeen, type HostSettings, hostSettings } from './judge.ts'
import { trendEveryMs, trendOf } from './trend.ts'

/** This machine. What cannot be judged on it (load on Windows, a clock without a reference) is left out. */
export default monitorKind({
  name: 'host',
  title: 'This machine: disks, memory, processors, clock',
  preload: preloadSystemInformation,
  settings: hostSettings,
  checks: [
    { name: 'uptime', depth: 'Basic', doc: 'How long the machine has been up; informational' },
    { name: 'disk <mount>', depth: 'Standard', doc: 'Free space of each writable local file system' },
    { name: 'inodes <mount>', depth: 'Standard', doc: 'Free inodes, where the file system has a fixed number' },
    { name: 'memory', depth: 'Standard', doc: 'Available memory' },
    { name: 'cpu', depth: 'Standard', doc: 'Processor use over at least 500 ms' },
    { name: 'load', depth: 'Standard', doc: 'Load per processor; not on Windows' },
    { name: 'clock', depth: 'Standard', doc: 'Offset to the configured time server' },
    {
      name: 'trend <mount>',
      depth: 'Advanced',
      doc: 'How long until the disk is full; from 6 Advanced runs over 3 hours on, with a store to keep what they saw',
    },
    { name: 'file descriptors', depth: 'Advanced', doc: 'Open files of the whole machine; Linux only' },
    { name: 'restarted', depth: 'Advanced', doc: 'Warns when the machine started lately' },
  ],
  async *observe(settings, context): AsyncGenerator<HostSeen> {
    context.step('uptime')
    const up = uptime() * 1_000
    yield { see: 'uptime', ms: up }
    if (!includes(context.mode, 'Standard')) return

    const limits = ownLimits(readText)
    const before = cpuSample(context.now, limits.cpu())
    context.step('disk')
    yield* lookAtDisks(settings, context)
    context.step('memory')
    yield await part('memory', context, async () => ({ see: 'memory', memory: await hostMemory(limits) }))
    const { processors } = before
    if (process.platform !== 'win32' && processors > 0) yield { see: 'load', load: loadavg()[0] ?? 0, processors }
    if (includes(context.mode, 'Advanced')) {
      const [open, , max] = (readText('/proc/sys/fs/file-nr') ?? '').trim().split(/\s+/).map(Number)
      if (open !== undefined && max !== undefined && max > 0) yield { see: 'descriptors', open, max }
      yield { see: 'since start', ms: up }
    }
    context.step('cpu')
    await pause(Math.max(0, Math.ceil(cpuWindowMs - (context.now() - before.at)) + 1), undefined, {
      signal: context.signal,
    })
    const after = cpuSample(context.now, limits.cpu())
    const percent = usedPercent(before, after)
    if (percent !== undefined) yield { see: 'cpu', percent, ms: after.at - before.at }
    // Last, because it waits for another machine.
    if (settings.clock) {
      const { reference } = settings.clock
      context.step('clock', reference)
      yield await part('clock', context, () => lookAtClock(reference, context), reference)
    }
  },
  evaluate: evaluateHost,
})

async function* lookAtDisks({ disks: only, skipDisks }: HostSettings, context: CheckContext): AsyncGenerator<HostSeen> {
  const missing = new Set(only)
  for await (const disk of disks()) {
    missing.delete(disk.mount)
    const wanted = only.length === 0 || only.includes(disk.mount)
    if (!wanted || skipDisks.includes(disk.mount)) continue
    yield { see: 'disk', disk }
    if (!includes(context.mode, 'Advanced') || 'error' in disk) continue
    const kept = await context.history(`free ${disk.mount}`, disk.available, trendEveryMs)
    const trend = trendOf(kept)
    if (trend) yield { see: 'trend', mount: disk.mount, trend }
  }
  for (const mount of missing) yield { see: 'not mounted', mount }
}

async function lookAtClock(reference: string, context: CheckContext): Promise<HostSeen> {
  const target = parseReference(reference)
  if (!target) throw new ProbeError('data', `clock.reference is neither a host nor host:port: ${reference}`)
  const [address] = await context.resolve(target.host)
  if (address === undefined) throw new ProbeError('dns', `${target.host} has no address`)
  const reading = await askTime(address, target.port, () => context.date().getTime(), context.signal)
  return { see: 'clock', reading, address: hostPort(address, target.port) }
}
