import { type MariadbServer, mariadbMissing, startMariadb } from '../../test/support/servers/mariadb.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../test/support/servers/postgres.ts'
import { during, type Example, until } from './example.ts'

const password = 'correct-horse-1'

export const sql: Example = {
  type: 'Sql',
  title: 'SQL database',
  meaning:
    'A SQL database server: PostgreSQL, MySQL or MariaDB, Microsoft SQL Server, a SQLite file. The name leaves no doubt.',
  peers: 'PostgreSQL 18.4, a primary and its streaming standby, and MariaDB, all real.',
  missing: postgresMissing ?? mariadbMissing,
  show: (stage) =>
    during(async (onEnd) => {
      const first = await startPostgres(['wal_receiver_status_interval=1s'])
      await first.query(`CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor`)
      await first.query('CREATE DATABASE orders')
      const { primary, standby } = await first.standby()
      onEnd(() => primary.remove())
      onEnd(() => standby.remove())
      const mariadb = await startMariadb()
      onEnd(() => mariadb.remove())
      await mariadb.query('CREATE DATABASE shop')
      await mariadb.query('CREATE TABLE shop.orders (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY)')
      await mariadb.query(
        `CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${password}'; GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'`,
      )
      await mariadb.query("GRANT SELECT ON shop.* TO monitor@'127.0.0.1'")
      stage.port(primary.port, 15_432)
      stage.port(standby.port, 15_433)
      stage.port(mariadb.port, 13_306)
      for (const name of ['orders-db', 'reporting-db', 'shop-db']) stage.file(name, password)
      await until('the standby follows', async () => {
        const rows = await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")
        return rows.length === 1
      })
      await stage.yaml(yaml(primary, standby, mariadb))
      await stage.list()
      await stage.green()

      await standby.query('SELECT pg_wal_replay_pause()')
      await primary.query('CREATE TABLE parcels AS SELECT generate_series(1, 1000) AS id', 'orders')
      await new Promise((resolve) => setTimeout(resolve, 4_000))
      stage.replace(/\b\d+(\.\d+)? s(?=\s+(?:\(warn\s1\ss,\s+fail\s3\ss\)|behind))/, '6.2 s')
      stage.replace(/\d+ KiB and/, '64 KiB and')
      await stage.red('The standby lags', {
        happened:
          'Replay was paused on the standby (`SELECT pg_wal_replay_pause()`), and rows were written on the primary. Both ends see the same lag, and the standby says why: the pause, not the network.',
        says: [/reporting-1 lags by \d/, /replay is paused/],
      })
      await standby.query('SELECT pg_wal_replay_resume()')

      stage.file('orders-db', 'mistyped-horse')
      await stage.red('A wrong password', {
        happened:
          'The file `orders-db` held another password than the server knows. The server itself answered, so it is the account and not the network. Nothing else of that server was looked at; the others are well.',
        says: [/refused the sign-in/],
      })
      stage.file('orders-db', password)

      await standby.stop('SIGQUIT')
      await mariadb.stop('SIGTERM')
      await stage.red('Servers that are gone', {
        happened:
          'The standby and MariaDB were stopped. Their host is up and refuses the connection; the primary has no replica any more, which is the consequence and is told as such.',
        says: [/refused the connection/, /0 of 1 expected replicas are streaming/],
      })
    }),
}

const yaml = (primary: PostgresServer, standby: PostgresServer, mariadb: MariadbServer): string => `types:
  Sql:
    host: false                        # the servers are elsewhere
    monitors:
      - kind: postgres
        name: orders
        url: postgres://monitor@127.0.0.1:${primary.port}/orders
        password: {file: orders-db}    # beside this file, or any path
        role: primary
        replicas: 1
        replicationLag: {warn: 1s, limit: 3s}
        restarted: off                 # this one was started a moment ago
      - kind: postgres
        name: reporting
        url: postgres://monitor@127.0.0.1:${standby.port}/orders
        password: {file: reporting-db}
        role: standby
        replicationLag: {warn: 1s, limit: 3s}
        restarted: off
      - kind: mysql
        name: shop
        url: mysql://monitor@127.0.0.1:${mariadb.port}/shop
        password: {file: shop-db}
        restarted: off
`
