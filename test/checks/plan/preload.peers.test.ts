import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MariadbServer, mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { preloaded } from './preloaded.ts'

peerSuite(mariadbMissing, 'a run at a real MariaDB', () => {
  let server: MariadbServer
  beforeAll(async () => {
    server = await startMariadb()
    await server.query(
      "CREATE USER monitor@'127.0.0.1' IDENTIFIED BY 'word'; GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'",
    )
  })
  afterAll(() => server.remove())

  test('opens no file of the driver, and none of its encodings', async () => {
    expect(await preloaded('mysql', server.url('monitor'), 'word')).toEqual({ files: [], failed: [] })
  })
})
