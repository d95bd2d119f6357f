import { expect, test } from 'vitest'
import { monitors } from '../../../src/core/checks/kinds/index.ts'

/** The results that a check may leave out although its settings are given, and when. All others are not checked then. */
const declared = {
  'file-age size': 'the folder has no file, which the check `newest` reports',
  'ftp delete': 'the round trip has failed, so there is no file',
  'ftp rename': 'the round trip has failed, so there is no file',
  'ftp sweep': 'the round trip could not open its folder',
  'heartbeat backlog': 'every agent is silent, which the check `reporting` says',
  'http cache': 'the answer has no Age header',
  'http json': 'the answer is not the XML that `xml` needs',
  'http links': 'the answer of an earlier address has been searched for links',
  'http measure': 'the answer is not the XML that `xml` needs',
  'http same version': 'fewer than two addresses report a version',
  'mysql queries': 'all queries have `depth: Advanced`, in a Standard run',
  'mysql write': 'the server is read-only',
  'oidc claims': 'the token is not signed, and `audience` is not set',
  'oidc clock': 'no answer contains a time',
  'oidc refresh': 'client credentials yield no refresh token',
  'oidc signature': 'the token is not signed',
  'postgres newest wal': 'the server is a primary',
  'postgres queries': 'all queries have `depth: Advanced`, in a Standard run',
  'postgres write': 'the server is a standby',
  'process cpu': 'no process is running, which the check `running` reports',
  'process memory': 'no process is running, which the check `running` reports',
  'rabbitmq cluster': 'no node is listed, which the check `node` reports',
  'redis oldest item': 'no queue has `age`',
  'sftp delete': 'the round trip has failed, so there is no file',
  'sftp rename': 'the round trip has failed, so there is no file',
  'sftp sweep': 'the round trip could not open its folder',
  'sqlite queries': 'all queries have `depth: Advanced`, in a Standard run',
  'sqlserver queries': 'all queries have `depth: Advanced`, in a Standard run',
  'sqlserver write': 'the database is read-only',
}

test('only these configured checks may yield no result', async () => {
  const statuses: Record<string, string> = {}
  for (const [name, { load }] of Object.entries(monitors)) {
    for (const one of (await load()).default.checks) {
      if (one.emptyWhere !== undefined) statuses[`${name} ${one.name}`] = one.emptyWhere
    }
  }
  expect(statuses).toEqual(declared)
})
