import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from './own-daemon.ts'
import { findProgram, freePort, remove } from './server.ts'

/** Name servers that only serve zones: what they configure, by the folder of `svc.zone` and the port. */
const configurations = {
  nsd: (folder: string, port: number) => `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  zonesdir: "${folder}"
  database: ""
  pidfile: "${folder}/pid"
  xfrdfile: "${folder}/xfrd"
  zonelistfile: "${folder}/zones"
  server-count: 1
remote-control:
  control-enable: no
zone:
  name: svc.test
  zonefile: svc.zone
`,
  knotd: (folder: string, port: number) => `server:
  rundir: "${folder}"
  listen: 127.0.0.1@${port}
database:
  storage: "${folder}/database"
zone:
  - domain: svc.test
    storage: "${folder}"
    file: svc.zone
    zonefile-sync: -1
    journal-content: none
`,
} as const
export type ZoneProgram = keyof typeof configurations

export const zoneServerMissing = (program: ZoneProgram): string | undefined =>
  findProgram(program) === undefined ? `${program} is not installed` : undefined

/** A real NSD or Knot on a free port of 127.0.0.1, with these records in the zone `svc.test`. */
export async function startZoneServer(program: ZoneProgram, records: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), `svc-${program}-`))
  const port = await freePort()
  mkdirSync(join(folder, 'database'))
  const zone = ['$ORIGIN svc.test.', '$TTL 60', '@ SOA ns admin 7 3600 900 1209600 60', '@ NS ns', 'ns A 127.0.0.1']
  writeFileSync(join(folder, 'svc.zone'), [...zone, ...records, ''].join('\n'))
  const file = join(folder, 'server.conf')
  writeFileSync(file, configurations[program](folder, port))
  const running = await startDaemon(
    findProgram(program) ?? '',
    [...(program === 'nsd' ? ['-d'] : []), '-c', file],
    port,
  )
  return {
    port,
    server: `127.0.0.1:${port}`,
    remove: async () => {
      await running.stop()
      remove(folder)
    },
  }
}
