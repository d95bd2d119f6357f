import { createServer, type Server, type Socket } from 'node:net'
import { rehearse } from '../../../src/cli/serve/rehearse.ts'
import { loadRehearsal } from '../../../src/core/config/index.ts'
import { serveDefaults } from '../../../src/core/protocol/service/service.ts'
import type { LogEntry, StartOptions } from '../../../src/core/server/index.ts'
import { load } from '../../config/given.ts'
import { testCore, testServer } from '../../support/engine/core.ts'

/** A listener that counts its connections and answers nothing. */
export type Counted = { readonly port: number; readonly count: () => number; readonly close: () => Promise<void> }

export async function counted(): Promise<Counted> {
  let count = 0
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    count += 1
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    count: () => count,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type Rehearsing = {
  readonly port: number
  readonly url: string
  readonly log: readonly LogEntry[]
  /** Sets the time of the script, in seconds from its start. */
  readonly at: (seconds: number) => void
  readonly hasEnded: () => boolean
  /** Ends it. The exit code. */
  readonly finish: () => number
  readonly close: () => Promise<void>
}

/** A server that rehearses, in this process, with the clock of the test for its script. */
export async function startRehearsal(
  yaml: string,
  script: string,
  more: Partial<Pick<StartOptions, 'host' | 'tls'>> & {
    readonly options?: Partial<StartOptions['options']>
    readonly env?: Readonly<Record<string, string>>
  } = {},
): Promise<Rehearsing> {
  let seconds = 0
  const real = await load(yaml, more.env)
  const read = await (await loadRehearsal()).readRehearsal('drill.yaml', script, real)
  const rehearsal = await rehearse(read, real, {
    monotonic: () => seconds * 1_000,
    wall: () => 1_000 + seconds * 1_000,
    beatMs: 5,
  })
  const log: LogEntry[] = []
  const { service, runtime } = await testCore({
    config: rehearsal.config,
    requireConfig: true,
    rehearses: true,
    log: (entry) => void log.push(entry),
  })
  const server = await testServer({
    service,
    runtime,
    options: { ...serveDefaults, ...rehearsal.config.serve, ...more.options },
    host: more.host ?? '127.0.0.1',
    tls: more.tls,
    log: (entry) => void log.push(entry),
    limits: { drainDelayMs: 0 },
    rehearsal: rehearsal.server,
  })
  runtime.answersAt?.(server.url)
  rehearsal.begin((entry) => void log.push(entry))
  return {
    port: server.port,
    url: server.url,
    log,
    at: (next) => {
      seconds = next
    },
    hasEnded: () => rehearsal.ends.aborted,
    finish: rehearsal.finish,
    close: async () => {
      rehearsal.finish()
      await server.stop()
      await runtime.close()
    },
  }
}
