import { expect, test } from 'vitest'
import { runMediaType } from '../../../src/core/protocol/index.ts'
import { decodeRun } from '../../../src/core/protocol/wire/index.ts'
import { type Peer, peer } from '../../support/faults/faults.ts'
import { hostileCases } from '../../support/hostile/cases.ts'
import { hostilePassword } from '../../support/hostile/password.ts'
import { endlessPeers } from '../../support/hostile/streams.ts'
import { startServe } from '../../support/program/serve-command.ts'
import { svcHome } from '../../support/program/svc.ts'

// Every server here is simulated: no real one behaves so. `svc serve` is the built program, and the sockets are real.

/** The deadline of each monitor. */
const deadlineMs = 5_000
/** Bytes that svc reads from one server at most, with what the sockets of both sides keep: that of sftp is 32 MiB. */
const maxTaken = 40 * 1024 * 1024

type Monitor = Readonly<Record<string, unknown>> & { readonly kind: string; readonly name: string }

const monitor = (kind: string, name: string, settings: object): Monitor => ({
  kind,
  name,
  timeout: `${deadlineMs}ms`,
  retries: 0,
  ...settings,
})

/** Runs the monitors in one `svc serve`, and asks it whether it lives until the run has ended. */
async function runInServe(monitors: readonly Monitor[]) {
  const home = svcHome()
  const env = { ...home.env, HOSTILE_PASSWORD: hostilePassword }
  try {
    await using serve = await startServe({ ...home, env }, JSON.stringify({ types: { App: monitors } }))
    const query = 'ServerType=App&ExecutionMode=Advanced&SuppressErrorCodes=true'
    let isOver = false
    const health = fetch(`${serve.url}/healthcheck?${query}`, { headers: { Accept: runMediaType } })
      .then((answer) => answer.text())
      .finally(() => {
        isOver = true
      })
    let polls = 0
    while (!isOver) {
      // Rejects when the process is blocked for as long as a run may take.
      const answer = await fetch(`${serve.url}/livez`, { signal: AbortSignal.timeout(deadlineMs) })
      expect(answer.status).toBe(200)
      await answer.arrayBuffer()
      polls += isOver ? 0 : 1
    }
    const names: ReadonlySet<unknown> = new Set(monitors.map(({ kind, name }) => `${kind} ${name}`))
    const { monitors: ran } = decodeRun(await health)
    return { ran: ran.filter(({ name }) => names.has(name)), polls }
  } finally {
    home.remove()
  }
}

test('H15 a server that never stops sending fails its monitor, takes bounded memory, and leaves /livez answered', async () => {
  await using peers = new AsyncDisposableStack()
  const started: { readonly name: string; readonly server: Peer; readonly taken: () => number }[] = []
  const monitors: Monitor[] = []
  for (const [index, { kind, what, settings, behaviour }] of endlessPeers.entries()) {
    let written = 0
    const server = peers.use(
      await peer((socket) => {
        socket.once('close', () => {
          written += socket.bytesWritten - socket.writableLength
        })
        behaviour(socket)
      }),
    )
    const name = `${index} ${what}`
    started.push({ name, server, taken: () => written })
    monitors.push(monitor(kind, name, settings(server.port)))
  }
  const { ran, polls } = await runInServe(monitors)
  expect(polls).toBeGreaterThan(5)
  expect(ran.filter(({ status }) => status !== 'failed').map(({ name }) => name)).toEqual([])
  expect(ran).toHaveLength(monitors.length)
  await expect.poll(() => started.filter(({ server }) => server.open() > 0).map(({ name }) => name)).toEqual([])
  expect(started.filter(({ server }) => server.connections() === 0).map(({ name }) => name)).toEqual([])
  expect(started.filter(({ taken }) => taken() > maxTaken).map(({ name, taken }) => `${name}: ${taken()}`)).toEqual([])
}, 300_000)

test('H15 servers that send 100 KB of blanks, backslashes, quotes and nested values leave /livez answered', async () => {
  await using peers = new AsyncDisposableStack()
  const monitors: Monitor[] = []
  for (const { kind, place, settings, serve, texts } of hostileCases) {
    for (const [shape, textOf] of Object.entries(texts)) {
      // A program is not a peer, and needs a folder that the system's own user controls. The client is not a kind.
      if (kind === 'exec' || kind === 'client' || kind === 'planted') continue
      if (shape !== 'blanks' && !shape.startsWith('nested')) continue
      const server = peers.use(await serve(textOf(100_000)))
      monitors.push(monitor(kind, `${monitors.length} ${shape} ${place}`.slice(0, 60), settings(server)))
    }
  }
  const { ran, polls } = await runInServe(monitors)
  expect(polls).toBeGreaterThan(5)
  expect(ran).toHaveLength(monitors.length)
}, 300_000)
