import { spawn, spawnSync } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { ServerCertificate } from './certs.ts'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const daemon = findProgram('redis-server')
const cli = findProgram('redis-cli')
export const redisMissing =
  daemon === undefined || cli === undefined ? 'Redis (redis-server, redis-cli) is not installed' : undefined

export type RedisServer = Running & {
  readonly port: number
  readonly folder: string
  readonly address: string
  readonly url: string
  /** One command by redis-cli, on a connection of its own; what it prints. */
  readonly cli: (...command: readonly string[]) => string
  /** The same, not waited for: a command that does not end. Returns how to end it. */
  readonly cliAside: (...command: readonly string[]) => () => void
  /** Connections of others than redis-cli and replicas, once they have had a moment to end. */
  readonly left: () => Promise<readonly string[]>
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

export type RedisOptions = {
  readonly settings?: readonly string[]
  /** Given: it speaks TLS only, and asks for no certificate of the client. */
  readonly tls?: ServerCertificate & { readonly caFile: string }
  /** For redis-cli, when the server wants a password. */
  readonly password?: string
  readonly folder?: string
  /** The port of an earlier start, to which the other servers of a cluster connect again. Default: a free one. */
  readonly port?: number
  /** Another server that speaks the same protocol, such as valkey-server. Default: redis-server. */
  readonly program?: string
  /** The text in its log once it is as far as the test requires. */
  readonly ready?: RegExp
}

/** A real Redis on a free port of 127.0.0.1 that keeps nothing. `settings` are `--name`, `value`. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const folder = options.folder ?? serverFolder('redis')
  const port = options.port ?? (await freePort())
  const { tls, settings = [] } = options
  // By default the port of a cluster's nodes for one another is 10,000 above the port, which may be beyond 65,535.
  const bus =
    settings.includes('--cluster-enabled') && !settings.includes('--cluster-port')
      ? ['--cluster-port', String(await freePort())]
      : []
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    if (asServer.uid !== undefined) chownSync(path, asServer.uid, asServer.gid)
    return path
  }
  const encryption = tls
    ? [
        ...['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no'],
        ...['--tls-cert-file', file('server.pem', tls.cert), '--tls-key-file', file('server.key', tls.key)],
        ...['--tls-ca-cert-file', tls.caFile],
      ]
    : ['--port', String(port)]
  const args = ['--bind', '127.0.0.1', '--dir', folder, '--save', '', ...encryption, ...bus, ...settings]
  const running = await run(options.program ?? daemon ?? '', args, options.ready ?? /Ready to accept connections/)
  const requests = [
    ...['-h', '127.0.0.1', '-p', String(port), ...(tls ? ['--tls', '--insecure'] : [])],
    ...(options.password === undefined ? [] : ['--no-auth-warning', '-a', options.password]),
  ]
  const redisCli = (...command: readonly string[]): string => {
    const made = spawnSync(cli ?? '', [...requests, ...command], { encoding: 'utf8', timeout: 10_000 })
    if (made.status !== 0) throw new Error(`redis-cli ${command[0]}: ${made.stderr}${made.stdout}`)
    return made.stdout.trim()
  }
  return {
    ...running,
    port,
    folder,
    address: `127.0.0.1:${port}`,
    url: `${tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`,
    cli: redisCli,
    cliAside: (...command) => {
      const child = spawn(cli ?? '', [...requests, ...command], { stdio: 'ignore' })
      return () => void child.kill('SIGKILL')
    },
    left: async () => {
      let clients: readonly string[] = []
      for (let tries = 0; tries < 40; tries += 1) {
        clients = redisCli('CLIENT', 'LIST', 'TYPE', 'normal')
          .split('\n')
          .filter((line) => !line.includes('cmd=client|list'))
        if (clients.length === 0) return clients
        await wait(50)
      }
      return clients
    },
    remove: async () => {
      running.thaw()
      await running.stop('SIGKILL')
      remove(folder)
    },
  }
}
