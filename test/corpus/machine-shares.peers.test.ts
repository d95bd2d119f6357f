import { release } from 'node:os'
import { type FuseShare, shareMissing, startShare } from '../support/faults/share.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails } from './row.ts'

const kernel = process.platform === 'linux' ? `Linux ${release().replace(/[^0-9.].*/, '')}` : process.platform

/** Settings that ignore the other work of the test machine, which has nothing to do with its file systems. */
const busy = {
  cpu: { warn: 100 },
  load: { warn: 1_000 },
  memory: { warn: 0.1 },
  swap: 'off',
  zombies: 'off',
  restarted: { warn: '0s' },
}
const place = '/mnt/share'
const hostOf =
  (more: object = {}) =>
  () => ({ kind: 'host', ...busy, disks: [place], ...more })
const askDisk = (): readonly PeerProgram[] => [{ program: 'check_disk', args: ['-w', '20%', '-c', '10%', '-p', place] }]

corpus<FuseShare>({
  server: `shares (FUSE) that svc.yaml names, ${kernel}`,
  missing: shareMissing,
  start: async () => {
    const share = await startShare()
    await share.mounts.shell(`mount -t tmpfs none /mnt && mkdir ${place} && mount --bind ${share.point} ${place}`)
    return share
  },
  mounts: ({ mounts }) => mounts,
  rows: [
    {
      fault: 'healthy',
      monitor: hostOf({ disk: { limit: 0 }, inodes: { limit: 0 } }),
      expected: { state: 'healthy' },
      before: 'unhealthy: no writable local file system is mounted there',
    },
    {
      fault: 'too little space is free',
      monitor: hostOf({ disk: { limit: '99.999%' }, inodes: { limit: 0 } }),
      expected: fails(`disk ${place}`, 'threshold', /^[\d.]+ % free of \d/),
      peers: askDisk,
    },
    {
      fault: 'the share does not answer',
      monitor: hostOf(),
      plant: async (server) => {
        await server.stop()
        return server.go
      },
      expected: fails(`disk ${place}`, 'timeout', /^the share .* \(fuse.* did not answer within 3 s/),
      before: 'unhealthy: no writable local file system is mounted there',
      peers: askDisk,
    },
  ],
})
