import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askChrony } from '../../../src/core/base/net/chrony.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import host from '../../../src/core/checks/kinds/host.ts'
import { runKind } from '../engine/run-kind.ts'
import { chronyd } from '../servers/chrony.ts'
import { until } from '../suite/until.ts'

// Runs in a network namespace of its own, where the port of chrony is free.

const folder = mkdtempSync(join(tmpdir(), 'svc-chrony-'))
/** Starts chronyd, which controls no clock (-x). Returns how to end it. */
function start(
  name: string,
  lines: readonly string[],
): { readonly child: ChildProcess; readonly end: () => Promise<void> } {
  const file = join(folder, `${name}.conf`)
  const own = [`pidfile ${join(folder, `${name}.pid`)}`, 'bindcmdaddress /']
  writeFileSync(file, [...own, ...lines, ''].join('\n'))
  const child = spawn(chronyd ?? '', ['-x', '-d', '-F', '0', '-u', 'root', '-f', file], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  return {
    child,
    end: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}
const command = ['cmdport 323', 'bindcmdaddress 127.0.0.1']
const { signal } = new AbortController()
const reports = (expected: boolean) => async (): Promise<boolean> => {
  const state = await askChrony(signal)
  return typeof state === 'object' && state.isSynchronized === expected
}
type Limits = { readonly warn?: number; readonly limit?: number }
const look = async (timeSync?: Limits): Promise<readonly Result[]> => {
  const results = await runKind(host, timeSync ? { timeSync } : {}, 'Standard')
  return results.filter(({ check }) => check === 'time sync')
}

const outcomes: Record<string, readonly Result[]> = {}
try {
  outcomes.absent = await look()
  outcomes.demanded = await look({ warn: 1_000 })

  const alone = start('alone', ['port 0', ...command])
  await until(reports(false), 60_000)
  outcomes.alone = await look()
  outcomes.limited = await look({ limit: 86_400_000 })
  await alone.end()

  const server = start('server', ['local stratum 8', 'allow 127.0.0.0/8', 'port 11123', 'cmdport 0'])
  const client = start('client', ['server 127.0.0.1 port 11123 iburst minpoll -4 maxpoll -4', 'port 0', ...command])
  await until(reports(true), 60_000)
  outcomes.following = await look()
  await server.end()
  // Only its last correction tells that its server has gone.
  await until(async () => (await look({ limit: 100 }))[0]?.status === 'failed', 60_000)
  outcomes.abandoned = await look({ limit: 100 })
  client.child.kill('SIGSTOP')
  outcomes.frozen = await look()
  await client.end()

  const local = start('local', ['local stratum 10', 'port 0', ...command])
  await until(reports(true), 60_000)
  outcomes.local = await look()
  await local.end()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.stdout.write(JSON.stringify(outcomes))
