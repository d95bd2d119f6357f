import { serveDefaults } from '../../../src/core/protocol/service/service.ts'
import { type RunningServer, startServer } from '../../../src/core/server/index.ts'
import { type Core, openCore } from '../../../src/core/service/open.ts'
import { cheapHash } from '../suite/cheap-hash.ts'

/** A core for a server, by default without a store and with an empty svc.yaml, where a password costs nothing. */
export const testCore = (options: Partial<Parameters<typeof openCore>[0]> = {}): Promise<Core> =>
  openCore({
    version: '1.2.3',
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store: undefined,
    shared: true,
    hashCost: cheapHash,
    details: 'signed-in',
    ...options,
  })

type Serving = Parameters<typeof startServer>[0]

/** A server of this process on a free port of 127.0.0.1, which stops without a delay and keeps no log, unless told. */
export const testServer = (core: Pick<Serving, 'service' | 'runtime'> & Partial<Serving>): Promise<RunningServer> =>
  startServer({
    options: serveDefaults,
    host: '127.0.0.1',
    port: 0,
    log: () => {},
    limits: { drainDelayMs: 0, lingerMs: 0, quietMs: 0 },
    ...core,
  })
