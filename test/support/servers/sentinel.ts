import { spawnSync } from 'node:child_process'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../suite/until.ts'
import { type RedisServer, startRedis } from './redis.ts'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const daemon = findProgram('redis-sentinel')
const cli = findProgram('redis-cli')
export const sentinelMissing = daemon === undefined ? 'Redis Sentinel (redis-sentinel) is not installed' : undefined

export type Sentinel = Running & {
  readonly url: string
  /** One command by redis-cli, as the default user; what it prints. */
  readonly cli: (...command: readonly string[]) => string
  /** Ends it and removes its configuration. */
  readonly remove: () => Promise<void>
}

/** A real Sentinel on a free port of 127.0.0.1 that monitors one primary as `orders`. */
export async function startSentinel(
  primary: RedisServer,
  quorum: number,
  more: readonly string[] = [],
  program: string | undefined = undefined,
): Promise<Sentinel> {
  const folder = serverFolder('sentinel')
  const port = await freePort()
  const file = join(folder, 'sentinel.conf')
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    `dir ${folder}`,
    `sentinel monitor orders 127.0.0.1 ${primary.port} ${quorum}`,
    'sentinel down-after-milliseconds orders 1000',
    ...more,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  if (asServer.uid !== undefined) chownSync(file, asServer.uid, asServer.gid)
  const running = await run(program ?? daemon ?? '', [file, '--sentinel'], /\+monitor (?:master|primary) orders/)
  return {
    ...running,
    url: `redis://127.0.0.1:${port}`,
    cli: (...command) => {
      const made = spawnSync(cli ?? '', ['-p', String(port), ...command], { encoding: 'utf8', timeout: 10_000 })
      if (made.status !== 0) throw new Error(`redis-cli ${command[0]}: ${made.stderr}${made.stdout}`)
      return made.stdout.trim()
    },
    remove: async () => {
      running.thaw()
      await running.stop('SIGKILL')
      remove(folder)
    },
  }
}

/**
 * A primary with one replica and two Sentinels that know one another. Two must agree that the primary is down.
 * `program`: another server for the first Sentinel, such as valkey-server.
 */
export async function startSentinelGroup(program?: string) {
  const fast = ['--repl-diskless-sync-delay', '0']
  const primary = await startRedis({ settings: fast })
  const replica = await startRedis({ settings: [...fast, '--replicaof', '127.0.0.1', String(primary.port)] })
  await until(() => primary.cli('INFO', 'replication').includes('state=online'))
  const sentinels: readonly [Sentinel, Sentinel] = [
    await startSentinel(primary, 2, [], program),
    await startSentinel(primary, 2),
  ]
  await until(() => sentinels.every((one) => /\+sentinel sentinel/.test(one.log())))
  return {
    primary,
    replica,
    sentinels,
    remove: async () => {
      for (const one of [...sentinels, replica, primary]) await one.remove()
    },
  }
}
