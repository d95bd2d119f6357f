import { expect, onTestFinished, test } from 'vitest'
import mysql from '../../../src/core/checks/kinds/mysql/index.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { peerSuite } from '../../support/suite/peer.ts'

peerSuite(mariadbMissing, 'MariaDB under a name with two addresses', () => {
  test('H51 a run in Basic aborts no connection, which the server would count until it blocks this machine', async () => {
    const server = await startMariadb(['--bind-address=0.0.0.0'])
    onTestFinished(() => server.remove())

    await server.query("CREATE USER monitor@'%' IDENTIFIED BY 'horse'")
    const settings = { url: `mysql://monitor@two.test:${server.port}/`, password: secret('horse') }
    const resolve = () => Promise.resolve(['127.0.0.1', '127.0.3.1'])
    const count = async (name: string): Promise<number> => {
      const [row] = await server.query(`SHOW GLOBAL STATUS LIKE '${name}'`)
      return Number(row?.Value)
    }
    const [aborted, connections] = [await count('Aborted_connects'), await count('Connections')]
    const results = await runKind(mysql, settings, 'Basic', { resolve })
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(await count('Connections')).toBeGreaterThanOrEqual(connections + 2)
    expect(await count('Aborted_connects')).toBe(aborted)
  })
})
