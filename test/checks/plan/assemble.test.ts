import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { includes, type PlannedMonitor, runMonitors } from '../../../src/core/checks/engine/index.ts'
import {
  type AssembleOptions,
  assemble,
  configurableKinds,
  describeKinds,
  describePlan,
  isKindName,
  loadKind,
  ownTypes,
  plans,
  standardPorts,
} from '../../../src/core/checks/plan/index.ts'
import { healthCheckResponse, runDocument } from '../../../src/core/checks/reports/index.ts'
import { ServerType } from '../../../src/core/protocol/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'

const never = new AbortController().signal
const withDefaults = (more: Partial<AssembleOptions> = {}): AssembleOptions => ({
  configured: [],
  host: {},
  parts: { storePath: '/var/lib/svc/svc.db', version: '1.2.3' },
  listening: async () => [],
  signal: never,
  ...more,
})
const names = (planned: readonly PlannedMonitor[]): readonly string[] => planned.map(({ name }) => name)

async function tcp(name: string, port: number, more: Partial<PlannedMonitor> = {}): Promise<PlannedMonitor> {
  const kind = await loadKind('tcp')
  const { values } = readSettings(kind.settings, { host: '127.0.0.1', port }, { env: {}, folder: '/' })
  const settings: unknown = values
  return { name, kind, settings, depth: 'Basic', host: false, dependsOn: [], retries: 0, deployment: false, ...more }
}

test.each(ServerType.values)('%s without configuration never has an empty plan', async (type) => {
  const planned = await assemble(type, withDefaults())
  expect(planned.filter(({ host }) => !host).length).toBeGreaterThan(0)
  const [configuration] = planned.filter(({ name }) => name === 'Configuration')
  const own = ownTypes(withDefaults().parts).includes(type)
  expect(configuration?.settings).toMatchObject({ level: own ? 'warn' : 'fail' })
})

test("Sql without configuration checks svc's own store and reports that as a warning", async () => {
  const planned = await assemble('Sql', withDefaults())
  expect(names(planned)).toEqual(['host', 'sqlite own store', 'Configuration'])
  expect(planned[1]?.settings).toMatchObject({ path: '/var/lib/svc/svc.db' })
  expect(planned[2]?.settings).toEqual({
    level: 'warn',
    message: "Sql: no server configured; svc's own store was checked",
  })
})

test('Sql without configuration and without a store is a failure', async () => {
  const planned = await assemble('Sql', withDefaults({ parts: { storePath: undefined, version: '1' } }))
  expect(names(planned)).toEqual(['host', 'Configuration'])
  expect(planned[1]?.settings).toMatchObject({ level: 'fail' })
})

test('a type without built-in checks fails and names the next step', async () => {
  const planned = await assemble('XcodeC', withDefaults({ host: false }))
  const run = await runMonitors(planned, engineFixture(), { mode: 'Basic', signal: never })
  const { Status, StatusMessage, FailedMonitorCount } = healthCheckResponse(
    runDocument(run, { type: 'XcodeC', correlationId: 'c', flags: {}, view: 'full' }),
  )
  expect([Status, FailedMonitorCount]).toEqual(['Failure', 1])
  expect(StatusMessage).toContain('XcodeC is not configured here: add it under types: in svc.yaml')
})

test('configured monitors replace the built-in ones', async () => {
  const planned = await assemble('Sql', withDefaults({ configured: [await tcp('tcp orders', 1)] }))
  expect(names(planned)).toEqual(['host', 'tcp orders'])
})

test('the host block is planned with its settings in svc.yaml, or omitted', async () => {
  const configured = [await tcp('tcp orders', 1)]
  const [host] = await assemble('Sql', withDefaults({ configured, host: { disk: { warn: '40%', limit: '30%' } } }))
  expect(host).toMatchObject({ name: 'host', host: true, settings: { disk: { warn: 40, limit: 30 } } })
  expect(names(await assemble('Sql', withDefaults({ configured, host: false })))).toEqual(['tcp orders'])
  const invalid = assemble('Sql', withDefaults({ configured, host: { dsik: 1 } }))
  await expect(invalid).rejects.toThrow(Fault)
})

test('the standard ports of each server type are those that kinds declare for it', () => {
  const ports = ServerType.values.map((type) => [type, standardPorts(type).map(({ port, what }) => `${port} ${what}`)])
  expect(Object.fromEntries(ports)).toEqual({
    App: [
      ...['25 smtp', '53 dns', '80 http', '443 https', '465 smtps', '587 smtp'],
      ...['1883 mqtt', '2379 etcd', '4222 nats', '8080 http', '8883 mqtts', '11211 memcached', '11300 beanstalkd'],
      '50051 grpc',
    ],
    Sql: ['1433 sqlserver', '3306 mysql', '5432 postgres', '6432 pgbouncer'],
    FtpApi: [],
    Ftp: ['21 ftp', '22 ssh', '990 ftps'],
    Batch: ['5672 rabbitmq', '6379 redis', '15672 rabbitmq management', '26379 redis sentinel'],
    Identity: ['389 ldap', '636 ldaps', '3268 ldap', '3269 ldaps'],
    Qc: [],
    XcodeV: ['8676 vantage'],
    XcodeC: ['1120 carbon'],
    MsgVast: [],
    AsgVast: [],
    Mongo: ['27017 mongo'],
    Agents: [],
  })
})

test('a usual port that listens is probed and never counts as a result', async () => {
  const requests: number[] = []
  const listening: AssembleOptions['listening'] = async (ports) => {
    requests.push(...ports.map(({ port }) => port))
    return ports.slice(0, 1)
  }
  const planned = await assemble('Mongo', withDefaults({ listening }))
  expect(requests).toEqual([27_017])
  expect(names(planned)).toEqual(['host', 'Configuration', 'listening'])
  expect(planned.at(-1)?.host).toBe(true)
})

test('a configured type is not discovered', async () => {
  const listening = (): never => {
    throw new Error('looked around')
  }
  await assemble('Mongo', withDefaults({ configured: [await tcp('tcp m', 1)], listening }))
})

test('a discovery that is not possible costs nothing, but a cancelled run ends', async () => {
  const listening: AssembleOptions['listening'] = async (_, signal) => {
    signal.throwIfAborted()
    throw Object.assign(new Error('no sockets left'), { code: 'EMFILE' })
  }
  expect(names(await assemble('Mongo', withDefaults({ listening })))).toEqual(['host', 'Configuration'])
  const stopped = AbortSignal.abort(new Error('stopped'))
  await expect(assemble('Mongo', withDefaults({ listening, signal: stopped }))).rejects.toThrow('stopped')
})

test('a defect in the discovery is not taken for a machine without open ports', async () => {
  const listening: AssembleOptions['listening'] = async () => {
    throw Object.assign(new TypeError('a defect'), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  await expect(assemble('Mongo', withDefaults({ listening }))).rejects.toThrow('a defect')
})

test('a mode without configured checks is a failure that names the mode', async () => {
  const configured = [await tcp('tcp a', 1, { depth: 'Advanced' }), await tcp('tcp b', 1, { depth: 'Standard' })]
  const basic = await assemble('Sql', withDefaults({ configured, mode: 'Basic' }))
  expect(basic.at(-1)?.settings).toEqual({
    level: 'fail',
    message: 'Sql: no monitor runs in Basic: the shallowest is Standard, use --mode Standard',
  })
  expect(names(await assemble('Sql', withDefaults({ configured, mode: 'Standard' })))).toEqual([
    'host',
    'tcp a',
    'tcp b',
  ])
})

test('an assembled plan can run', async () => {
  const server = createServer((socket) => socket.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const planned = await assemble('Ftp', withDefaults({ configured: [await tcp('tcp ftp1', port)], host: false }))
  const run = await runMonitors(planned, engineFixture(), { mode: 'Basic', signal: never })
  expect(run.monitors.map(({ name, results }) => [name, results[0]?.status])).toEqual([['tcp ftp1', 'ok']])
})

test('a plan is described by mode, without running it', async () => {
  const planned = await assemble('Sql', withDefaults({ configured: [await tcp('tcp late', 1, { depth: 'Standard' })] }))
  expect(describePlan(planned, 'Basic').map(({ MonitorName }) => MonitorName)).toEqual(['host'])
  const rows = describePlan(planned, 'Advanced')
  expect(rows.map(({ MonitorName, Kind, Depth, Host }) => [MonitorName, Kind, Depth, Host])).toEqual([
    ['host', 'host', 'Basic', true],
    ['tcp late', 'tcp', 'Standard', false],
  ])
  expect(rows[1]?.Checks[0]).toMatchObject({ Name: 'connect', Depth: 'Standard' })
  for (const { Checks } of describePlan(planned, 'Standard')) {
    expect(Checks.every(({ Depth }) => includes('Standard', Depth))).toBe(true)
  }
})

test('each kind is described except the internal ones', async () => {
  const kinds = await describeKinds()
  const listed = kinds.map(({ name }) => name)
  expect(listed).toEqual([...listed].sort())
  expect(listed).toEqual([...(await configurableKinds()).map(({ name }) => name), 'host'].sort())
  expect(listed).not.toContain('configuration')
  expect(kinds.find(({ name }) => name === 'tcp')?.settings).toContainEqual({
    name: 'latency',
    type: 'warn and limit in durations',
    default: '{warn: 1s, limit: 3s}',
    required: false,
    doc: expect.any(String),
  })
})

test('what the plans propose is valid configuration', async () => {
  const configurable = (await configurableKinds()).map(({ name }) => name)
  for (const type of ServerType.values) {
    expect(plans[type].kinds.length, type).toBeGreaterThan(0)
    for (const kind of plans[type].kinds) {
      expect(isKindName(kind) && configurable.includes(kind), `${type}: ${kind}`).toBe(true)
    }
  }
})
