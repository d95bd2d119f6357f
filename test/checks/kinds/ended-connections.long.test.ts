import { expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import httpSteps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { describeEnds, type EndedRow, kindsInPeers, type Settings } from '../../support/engine/ended-connection.ts'
import { kindsWithRows } from '../../support/engine/kind-rows.ts'
import { secret } from '../../support/engine/run-kind.ts'
import { scriptedFtp, startFtpServer } from '../../support/servers/ftp-server.ts'
import { healthServer } from '../../support/servers/grpc.ts'
import { startPostgres } from '../../support/servers/postgres.ts'
import { startSftpServer } from '../../support/servers/sftp-server.ts'
import { startSmtp } from '../../support/servers/smtp.ts'
import { httpPeer, pages } from '../../support/simulated/http-peer.ts'
import { mongoPeer } from '../../support/simulated/mongo.ts'
import { answers as mongoAnswers, hello as mongoHello } from '../../support/simulated/mongo-node.ts'
import { answers as sqlserverAnswers } from '../../support/simulated/sqlserver.ts'
import { tdsPeer } from '../../support/simulated/tds.ts'

const host = '127.0.0.1'
const word = 'correct horse'
const password = secret(word)
const ftpSettings =
  (more: Settings = {}) =>
  (port: number): Settings => ({
    host,
    port,
    tls: 'off',
    username: 'monitor',
    password,
    allowWrites: true,
    folder: '/',
    files: { limit: 1_000 },
    ...more,
  })

const rows: readonly EndedRow[] = [
  {
    name: 'ftp at ftp-srv',
    kind: 'ftp',
    opening: ['banner', 'sign-in'],
    start: async () => {
      const { port, remove } = await startFtpServer(word)
      return { port, remove }
    },
    settings: ftpSettings(),
  },
  {
    // A warning that comes before the end was the whole verdict.
    name: 'ftp at a simulated server that refuses EPSV',
    kind: 'ftp',
    opening: ['banner', 'sign-in'],
    start: () => scriptedFtp({ answers: { EPSV: '500 OOPS: no port is free' } }),
    settings: ftpSettings({ allowWrites: false }),
  },
  {
    name: 'sftp at the server of ssh2',
    kind: 'sftp',
    opening: ['banner', 'host key', 'sign-in', 'listing'],
    start: async () => {
      const server = await startSftpServer({ password: word })
      return { port: server.port, close: server.close, more: { hostKey: [server.hostKey] } }
    },
    settings: (port) => ({ host, port, username: 'monitor', password, folder: '/home', allowWrites: true }),
  },
  {
    name: 'smtp at smtp-server',
    kind: 'smtp',
    opening: ['banner', 'TLS'],
    start: () => startSmtp({ size: 20_000_000 }),
    settings: (port) => ({ host, port, tls: 'off', recipient: 'accepted@svc.test', size: 1_000_000 }),
  },
  {
    name: 'grpc at grpc-js',
    kind: 'grpc',
    opening: ['connect', 'health'],
    start: () => healthServer({ '': 'SERVING', a: 'SERVING', b: 'SERVING' }),
    settings: (port) => ({ host, port, services: ['a', 'b'] }),
  },
  {
    name: 'postgres at PostgreSQL',
    kind: 'postgres',
    opening: ['connect', 'query'],
    start: () => startPostgres(),
    settings: (port) => ({ url: `postgres://postgres@${host}:${port}/postgres`, queries: [query] }),
  },
  {
    name: 'sqlserver at a simulated server',
    kind: 'sqlserver',
    opening: ['connect', 'query'],
    start: () => tdsPeer({ answer: sqlserverAnswers() }),
    settings: (port) => ({ url: `sqlserver://monitor@${host}:${port}/orders`, password }),
  },
  {
    name: 'mongo at a simulated primary',
    kind: 'mongo',
    opening: ['connect', 'hello'],
    reconnects: true,
    start: () => mongoPeer({ users: { monitor: word }, hello: mongoHello.primary, answer: mongoAnswers() }),
    settings: (port) => ({ url: `mongodb://monitor@${host}:${port}/`, password, allowWrites: true }),
  },
  {
    name: 'http at node:http',
    kind: 'http',
    opening: ['connect', 'status'],
    start: () => httpPeer(pages(() => ({ '/': { state: 'well' } }))),
    settings: (port) => ({ url: `http://${host}:${port}/`, json: { '$.state': 'well' } }),
  },
  {
    name: 'http-steps at node:http',
    kind: 'http-steps',
    opening: ['step'],
    start: () => httpPeer(pages(() => ({ '/a': 'first', '/b': 'second' }))),
    settings: (port) => {
      const steps = [
        { name: 'a', path: '/a' },
        { name: 'b', path: '/b' },
      ]
      const raw = { url: `http://${host}:${port}/`, steps }
      return readSettings(httpSteps.settings, raw, { env: {}, folder: '/' }).values
    },
  },
  ...kindsWithRows.flatMap(({ kind, ended }) =>
    ended === 'no shared session' ? [] : ended.map((row) => ({ ...row, kind })),
  ),
]
const query = { name: 'one', sql: 'SELECT 1', atMost: { limit: 5 }, depth: 'Standard' }

describeEnds(rows)

/** These make one request on a connection of its own, or speak over no TCP connection to a server of their own. */
const others: readonly KindName[] = [
  'configuration',
  'deployment',
  'dns',
  'exec',
  'file-age',
  'heartbeat',
  'host',
  'listening',
  'mail-queue',
  // Each request has a connection of its own, and the provider names its own address.
  'oidc',
  'ping',
  'process',
  'self',
  'service',
  'sign-in',
  'sqlite',
  'svc',
  'tls',
  ...kindsWithRows.filter(({ ended }) => ended === 'no shared session').map(({ kind }) => kind),
]

test('H22 every kind is in a table of ended connections, or has no session that its checks share', () => {
  const kinds = [...new Set([...rows.map(({ kind }) => kind), ...kindsInPeers]), ...others]
  expect(kinds.toSorted()).toEqual(Object.keys(monitors).toSorted())
})
