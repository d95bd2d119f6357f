import { databaseKind, mysqlAccount } from '../../database/index.ts'
import { galera, replication, threads, transactions } from './checks.ts'
import { loadMysql, openMysql } from './driver.ts'

export default databaseKind({
  name: 'mysql',
  title: 'A MySQL or MariaDB server works, and would survive the night',
  port: 3_306,
  settings: {
    url: {
      type: 'url',
      protocols: ['mysql', 'mariadb'],
      required: true,
      doc: 'mysql://user@host:port/database, without a password; the database may be left out',
    },
    password: { type: 'secret', doc: "The user's password" },
  },
  preload: loadMysql,
  open: openMysql,
  // Whatever the time zone of the server and of the session.
  clock: "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000 AS at",
  account: mysqlAccount,
  checks: [threads, replication, galera, transactions],
})
