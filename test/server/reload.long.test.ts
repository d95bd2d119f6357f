import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ask, startNode } from '../support/program/serve-node.ts'
import { until } from '../support/suite/until.ts'

const rounds = 5
const callersOfType = 8

test('W9 under load, reloads lose no answer, and a bad file is refused with its line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-reload-'))
  const peer = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  const { port } = peer.address() as { readonly port: number }
  const tcp = (name: string): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}}`
  /** Sql never changes. */
  const yamlOf = (...names: readonly string[]): string =>
    `serve: {every: off}\ntypes:\n  Sql: [${tcp('base')}]\n  App:\n${names.map((name) => `    - ${tcp(name)}\n`).join('')}`
  try {
    await using node = await startNode({ store: join(folder, 'store', 'svc.db'), yaml: yamlOf('base') })
    let isDone = false
    const statuses: number[] = []
    const complete = { App: 0, Sql: 0 }
    const caller = async (type: 'App' | 'Sql'): Promise<void> => {
      while (!isDone) {
        const answer = await ask(
          `${node.url}/healthcheck?ServerType=${type}&ExecutionMode=Basic&SuppressErrorCodes=true`,
        )
        statuses.push(answer.status)
        if (answer.body.includes('tcp base')) complete[type] += 1
      }
    }
    const callers = (['App', 'Sql'] as const).flatMap((type) =>
      Array.from({ length: callersOfType }, () => caller(type)),
    )
    const reloads = (): number => node.log().split('"reloaded: ').length - 1
    for (let round = 1; round <= rounds; round += 1) {
      const before = { ...complete }
      writeFileSync(node.config, yamlOf('base', `extra-${round}`))
      node.signal('SIGHUP')
      await until(() => reloads() === round, 30_000)
      await until(() => complete.App > before.App && complete.Sql > before.Sql, 30_000)
    }
    // The line with the mistake is that of the first entry of App.
    writeFileSync(node.config, `types:\n  App:\n    - {kind: tcp, host: x, prot: 1}\n`)
    node.signal('SIGHUP')
    await until(() => node.log().includes('not reloaded'), 30_000)
    expect(node.log()).toMatch(/not reloaded[^\n]*svc\.yaml:3:/)
    expect((await ask(`${node.url}/metrics`)).body).toMatch(/^svc_config_last_reload_successful 0$/m)
    const before = complete.App
    await until(() => complete.App > before, 30_000)
    isDone = true
    await Promise.all(callers)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(complete.App + complete.Sql).toBe(statuses.length)
  } finally {
    peer.close()
    rmSync(folder, { recursive: true, force: true })
  }
}, 120_000)
