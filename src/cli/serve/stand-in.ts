import { Fault } from '../../core/base/errors.ts'
import type { Service } from '../../core/protocol/service/service.ts'
import { type RunningServer, type StartOptions, startServer } from '../../core/server/index.ts'
import { openCore } from '../../core/service/open.ts'
import { withoutFile } from '../session/without-file.ts'

/**
 * A server in place of one that waits: it lives, is not ready, and refuses every operation with the reason. It has no
 * monitors, no store and no socket.
 */
export async function standIn({
  options,
  version,
  reason,
  ...start
}: Pick<StartOptions, 'options' | 'host' | 'port' | 'tls' | 'log'> & {
  readonly version: string
  readonly reason: string
}): Promise<RunningServer> {
  const { details } = options
  const core = await openCore({ version, config: withoutFile, store: undefined, shared: false, details })
  const refuse = async (): Promise<never> => {
    throw new Fault('Unavailable', reason, { retryAfter: 5 })
  }
  const service = Object.fromEntries(Object.keys(core.service).map((name) => [name, refuse])) as unknown as Service
  const server = await startServer({
    ...start,
    service,
    runtime: { ...core.runtime, ready: refuse, recent: refuse },
    options: { ...options, socket: undefined },
    limits: { drainDelayMs: 0 },
  })
  return { ...server, stop: async () => await server.stop().finally(core.runtime.close) }
}
