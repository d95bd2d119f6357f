import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bind } from './bind.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('unbound')
export const unboundMissing = program === undefined ? 'Unbound is not installed' : undefined

export type Unbound = Running & {
  readonly port: number
  /** As the setting `server` takes it. */
  readonly server: string
  readonly remove: () => Promise<void>
}

export type UnboundOptions = {
  /** The name server that it asks about `svc.test`; with a trust anchor, it validates the signatures. */
  readonly upstream: Pick<Bind, 'port' | 'trustAnchor'>
  /** Refuses everybody, as a resolver does whose access list lacks a client. */
  readonly refuses?: boolean
  /** Further lines of the clause `server`. */
  readonly lines?: readonly string[]
}

/** A real Unbound on a free port of 127.0.0.1 that resolves `svc.test` and nothing else. */
export async function startUnbound({ upstream, refuses = false, lines = [] }: UnboundOptions): Promise<Unbound> {
  const folder = serverFolder('unbound')
  const port = await freePort()
  const file = join(folder, 'unbound.conf')
  const anchor = upstream.trustAnchor?.replaceAll(/\s+/g, ' ').replaceAll('"', '')
  writeFileSync(
    file,
    `server:
  directory: "${folder}"
  username: ""
  chroot: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  num-threads: 1
  interface: 127.0.0.1@${port}
  access-control: 127.0.0.0/8 ${refuses ? 'refuse' : 'allow'}
  do-not-query-localhost: no
  # RFC 6761 reserves "test".
  local-zone: "test." nodefault
  module-config: "${anchor === undefined ? 'iterator' : 'validator iterator'}"
${anchor === undefined ? '' : `  trust-anchor: "${anchor}"\n`}${lines.map((line) => `  ${line}\n`).join('')}
remote-control:
  control-enable: no
stub-zone:
  name: "svc.test"
  stub-addr: 127.0.0.1@${upstream.port}
`,
    { mode: 0o644 },
  )
  const running = await run(program ?? '', ['-d', '-c', file], /start of service/)
  return {
    ...running,
    port,
    server: `127.0.0.1:${port}`,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
