/** The servers that the monitors of the schedule bench check, and what they count. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificates, opensslMissing } from '../../test/support/servers/certs.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../test/support/servers/postgres.ts'
import { remove, serverFolder } from '../../test/support/servers/server.ts'
import { accountOf, httpAddresses, type Mix, postgresAddresses, type Targets } from './monitors.ts'
import { addressAt, blocks, type PeerPorts, type PeerSpec, type Probes } from './peer.ts'

/** Why the monitors of the mix cannot be checked here. */
export const mixMissing = postgresMissing ?? opensslMissing()

export type Counted = Probes & { readonly postgres: { readonly ids: Float64Array; readonly at: Float64Array } }
/** The counts of the peers, and the number of connections to PostgreSQL, of which some may not have signed in. */
export type PeerCounts = { readonly probes: Counted; readonly postgresConnections: number }

export type Servers = {
  readonly targets: Targets
  readonly pids: readonly number[]
  /** Counts from now on. */
  readonly begin: () => Promise<void>
  /** The requests since `begin`. */
  readonly end: () => Promise<PeerCounts>
  readonly stop: () => Promise<void>
}

const answerMs = 60_000
const password = 'violet-harbour-42'

/** Starts what this mix needs: HTTP and TLS in one process, PostgreSQL as it is. */
export async function startServers(mix: Mix, intervalMs: number): Promise<Servers> {
  const folder = serverFolder('bench')
  const certificates = mix.tls === 0 ? undefined : makeCertificates()
  let [peer, postgres]: [ChildProcess | undefined, PostgresServer | undefined] = [undefined, undefined]
  const stop = async (): Promise<void> => {
    if (peer?.connected === true) {
      const ended = once(peer, 'exit')
      peer.disconnect()
      await ended
    }
    await postgres?.remove()
    certificates?.remove()
    remove(folder)
  }
  const ask = async <T>(message: PeerSpec | 'begin' | 'end'): Promise<T> => {
    if (!peer) throw new Error('no peer')
    const answer = once(peer, 'message', { signal: AbortSignal.timeout(answerMs) })
    peer.send(message)
    return ((await answer) as [T])[0]
  }
  try {
    peer = fork(new URL('./peer.ts', import.meta.url).pathname, { serialization: 'advanced' })
    const ports = await ask<PeerPorts>({ http: httpAddresses, tls: mix.tls, certificate: certificates?.good })
    if (mix.postgres > 0) postgres = await startDatabase(mix.postgres)
    const file = (name: string, text: string, mode: number): string => {
      writeFileSync(join(folder, name), text)
      chmodSync(join(folder, name), mode)
      return join(folder, name)
    }
    const targets: Targets = {
      mix,
      intervalMs,
      ports: { ...ports, postgres: postgres?.port ?? 0 },
      // blackbox_exporter runs as another account.
      caFile: file('ca.pem', certificates?.ca ?? '', 0o644),
      passwordFile: file('password', password, 0o600),
    }
    let logFrom = 0
    return {
      targets,
      pids: [peer.pid ?? 0, ...(postgres ? [postgres.pid] : [])],
      begin: async () => {
        logFrom = postgres?.log().length ?? 0
        await ask('begin')
      },
      end: async () => {
        const probes = await ask<Probes>('end')
        const log = postgres?.log().slice(logFrom) ?? ''
        return {
          probes: { ...probes, postgres: signInsIn(log) },
          postgresConnections: log.split('connection received').length - 1,
        }
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A PostgreSQL that writes each connection into its log, with an account for each monitor. */
async function startDatabase(monitors: number): Promise<PostgresServer> {
  const addresses = Array.from({ length: postgresAddresses }, (_, number) => addressAt(blocks.postgres, number))
  const server = await startPostgres(
    [
      `listen_addresses=127.0.0.1,${addresses.join(',')}`,
      'max_connections=200',
      'log_connections=on',
      'log_line_prefix=%n ',
    ],
    'host all +watchers 127.0.0.0/8 scram-sha-256\n',
  )
  const accounts = Array.from(
    { length: monitors },
    (_, number) => `CREATE ROLE ${accountOf(number)} LOGIN PASSWORD '${password}' IN ROLE watchers, pg_monitor`,
  )
  await server.query(['CREATE ROLE watchers', ...accounts].join(';'))
  return server
}

/** The sign-ins in its log, by the number of the monitor, with milliseconds since 1970. */
function signInsIn(log: string): Counted['postgres'] {
  const lines = [...log.matchAll(/^(\d+\.\d+) LOG: {2}connection authorized: user=watch(\d+) /gm)]
  return {
    ids: Float64Array.from(lines, ([, , number]) => Number(number)),
    at: Float64Array.from(lines, ([, at]) => Number(at) * 1_000),
  }
}
