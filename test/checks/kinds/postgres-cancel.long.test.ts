import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseTarget, PeerSocket, type TlsSetting } from '../../../src/core/checks/database/index.ts'
import { openPostgres } from '../../../src/core/checks/kinds/postgres/driver.ts'
import { files } from '../../support/engine/files.ts'
import { secret } from '../../support/engine/run-kind.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { type PostgresServer, postgresMissing, startPostgres, tlsSettings } from '../../support/servers/postgres.ts'
import { remove, serverFolder } from '../../support/servers/server.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct horse'
/** The codes that begin a request to cancel, and a connection that asks for TLS, as the protocol writes them. */
const code = (number: number): string => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(number)
  return bytes.toString('latin1')
}
const [cancel, ssl] = [code(80_877_102), code(80_877_103)]

suiteWith(postgresMissing ?? opensslMissing(), 'PostgreSQL: cancelling', () => {
  let certificates: Certificates
  let server: PostgresServer
  const folder = serverFolder('postgres-cancel')
  beforeAll(async () => {
    certificates = makeCertificates()
    server = await startPostgres(tlsSettings(certificates.good, folder))
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
  })
  afterAll(async () => {
    await server.remove()
    certificates.remove()
    remove(folder)
  })

  test.each([
    ['over TLS, its key is encrypted too', 'verify', false],
    ['without TLS, its request needs none', 'off', true],
  ] as const)('PostgreSQL: a query is cancelled on a second connection; %s', async (_, mode, isPlain) => {
    await using between = await proxy(server.port, 0)
    const control = new AbortController()
    const socket = await PeerSocket.reach('127.0.0.1', between.port, control.signal)
    const tls: TlsSetting = { mode, caFile: certificates.caFile, servername: 'svc.test' }
    const target = databaseTarget({ url: server.url('monitor'), password: secret(word), tls }, between.port)
    const way = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000, files }
    const session = await openPostgres({ ...target, port: between.port }, way)
    const sleeping = session.ask('SELECT pg_sleep(60)').catch((error: unknown) => error)
    const running = async (): Promise<number> =>
      (await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")).length
    await until(async () => (await running()) === 1)
    control.abort()
    await session.close()
    expect(await sleeping).toBeInstanceOf(Error)
    await until(async () => (await running()) === 0)
    expect(between.input().includes(cancel)).toBe(isPlain)
    expect(between.input().split(ssl)).toHaveLength(isPlain ? 1 : 3)
  })
})
