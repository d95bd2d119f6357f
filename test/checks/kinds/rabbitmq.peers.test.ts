import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import rabbitmq from '../../../src/core/checks/kinds/rabbitmq/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'
import { type Behaviour, peer } from '../../support/faults/faults.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { administrator, type RabbitmqServer, rabbitmqMissing, startRabbitmq } from '../../support/servers/rabbitmq.ts'
import { peerSuite, suiteWith } from '../../support/suite/peer.ts'
import { hungUp, until } from '../../support/suite/until.ts'

type RabbitmqSettings = Values<typeof rabbitmq.settings>
type Overrides = Partial<RabbitmqSettings>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const word = administrator.password
const account: Overrides = { username: administrator.username, password: secret(word) }

/** Settings of queues as svc.yaml gives them, defaults filled in. */
const withAccount = (some: object): Overrides =>
  withDefaults(rabbitmq.settings, { url: 'http://h', ...account, ...some } as Overrides)

peerSuite(rabbitmqMissing, 'rabbitmq', () => {
  let server: RabbitmqServer
  const queue = (name: string, more: object = {}): object => ({ queues: [{ name, ...more }] })
  const run = (some: object = {}, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
    runKind(rabbitmq, withAccount({ url: server.url, ...some }), mode, options)
  const one = async (check: string, ...args: Parameters<typeof run>): Promise<Result> =>
    checked(await run(...args), check)
  let started: readonly number[] = []
  beforeAll(async () => {
    server = await startRabbitmq()
    started = server.processes()
    await server.api('PUT', 'queues/%2f/empty', { durable: true })
    const idle = await server.consume('empty', 1)
    afterAll(() => void idle.destroy())
    // The server gathers its figures now and then.
    const isCounted = async (): Promise<boolean> =>
      ((await server.api('GET', 'queues/%2f/empty')) as Record<string, unknown>).consumers === 1
    await until(isCounted, 30_000, 100)
  }, 90_000)
  afterAll(async () => {
    await server.remove()
    // Neither the server nor its epmd nor what they started is left.
    expect(started.length).toBeGreaterThan(2)
    expect(server.processes()).toEqual([])
  }, 30_000)

  describe('a healthy server', () => {
    test('each mode runs its checks and those of the shallower ones, and all are ok', async () => {
      const names = async (mode: Mode): Promise<string[]> => {
        const results = await run({ ...queue('empty'), nodes: 1, messages: { limit: 100 } }, mode)
        expect(results.filter((result) => result.status !== 'ok')).toEqual([])
        expect(results.every((result) => result.address === server.address)).toBe(true)
        return results.map((result) => result.check)
      }
      const standard = ['management', 'sign-in', 'messages', 'node', 'alarms', 'memory', 'file descriptors', 'sockets']
      expect(await names('Basic')).toEqual(['management'])
      expect(await names('Standard')).toEqual([...standard, 'all queues', 'queue', 'consumers'])
      expect(await names('Advanced')).toEqual([
        ...standard,
        'partitions',
        'cluster',
        'all queues',
        'queue',
        'consumers',
      ])
    })
    test('Basic sends no password, and only GET is ever sent', async () => {
      await using watcher = await proxy(server.port, 0)
      const url = `http://127.0.0.1:${watcher.port}`
      await run({ url })
      expect(watcher.input()).toContain('GET /api/overview HTTP/1.1')
      expect(watcher.input()).not.toMatch(/authorization/i)
      await run({ url, ...queue('empty') }, 'Advanced')
      const methods = [...watcher.input().matchAll(/^([A-Z]+) \/\S* HTTP/gm)].map(([, method]) => method)
      expect(new Set(methods)).toEqual(new Set(['GET']))
      await hungUp(watcher)
    })
    test('it reports what it observes', () =>
      finds(
        run({}, 'Standard'),
        ['sign-in', /^signed in, RabbitMQ \d+\.\d+/],
        'node: 1 node is running',
        ['memory', /^svc\d+@localhost: \d+ MiB of [\d.]+ GiB \(high watermark\): [\d.]+ % \(warn 80 %, fail 95 %\)$/],
        ['file descriptors', /\d+ of \d+ file descriptors: /],
      ))
  })

  describe('queues', () => {
    test('a missing queue or vhost fails and does not hide others', async () => {
      const queues = [{ name: 'gone' }, { name: 'empty', vhost: 'else where/' }, { name: 'empty' }]
      const results = (await run({ queues }, 'Standard')).filter(({ check }) => check === 'queue')
      expect(results.map(({ status }) => status)).toEqual(['failed', 'failed', 'ok'])
      expect(results[0]?.message).toBe(`${server.address} has no queue "gone" in the vhost "/"`)
    })
  })

  describe('an account with too few permissions', () => {
    const as = (username: string): object => ({ username, password: secret('secret-9') })
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const invalid = { password: secret('hunter2-wrong') }
      const findQueue = await one('sign-in', invalid, 'Standard', { limits: shared, retries: 3 })
      expect(findQueue).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(findQueue.message).toContain('refused the sign-in of "administrator": Login failed')
      expect(JSON.stringify(findQueue)).not.toContain('hunter2')
      await finds(run(invalid, 'Standard', { limits: shared }), ['sign-in', /^refused: (?!\S+ refused)/])
    })
    test('an account with only the permissions that the checks declare sees everything', async () => {
      await server.api('PUT', 'users/limited', { password: 'secret-9', tags: '' })
      const some = { ...queue('empty'), deadLetters: [{ name: 'empty' }], nodes: 1, messages: { limit: 100 } }
      const unwell = async (): Promise<string[]> =>
        (await run({ ...as('limited'), ...some }, 'Advanced'))
          .filter(({ status }) => status !== 'ok')
          .map(({ check }) => check)
      expect(await unwell()).toEqual(['sign-in', 'messages'])
      // The management's equivalent of rabbitmqctl: its arguments are what is declared.
      const declared = new Set(rabbitmq.checks.flatMap(({ privilege }) => privilege?.split('; ') ?? []))
      const [tags, permissions, ...more] = declared
      expect([tags, permissions, ...more]).toEqual([
        'rabbitmqctl set_user_tags <account> monitoring',
        'rabbitmqctl set_permissions -p <vhost> <account> "^$" "^$" "^$"',
      ])
      await server.api('PUT', 'users/limited', { password: 'secret-9', tags: 'monitoring' })
      expect(await unwell()).toEqual(['all queues', 'queue', 'dead letters'])
      await server.api('PUT', 'permissions/%2f/limited', { configure: '^$', write: '^$', read: '^$' })
      expect(await unwell()).toEqual([])
    })
  })

  describe('a server in trouble', () => {
    test('slow: answers that are each 150 ms late exceed the threshold', async () => {
      await using slow = await proxy(server.port, 150)
      const some = { url: `http://127.0.0.1:${slow.port}`, latency: { warn: 50, limit: 100 } }
      await finds(run(some), ['management failed (threshold)', { measurement: { limit: 100 } }])
    })
  })

  suiteWith(opensslMissing(), 'over TLS', () => {
    let made: Certificates
    beforeAll(() => {
      made = makeCertificates()
    })
    afterAll(() => made.remove())
    /** TLS ends before the server, as at a reverse proxy. */
    const front: Behaviour = (socket) => {
      const far = connect(server.port, '127.0.0.1')
      far.on('error', () => socket.destroy())
      socket.on('close', () => far.destroy())
      socket.pipe(far).pipe(socket)
    }
    const over = async (
      output: 'good' | 'fiveDays' | 'expired' | 'otherHost',
      some: object = {},
      mode: Mode = 'Basic',
    ) => {
      await using there = await peer(front, { tls: made[output] })
      const url = `https://127.0.0.1:${there.port}`
      const results = await run({ url, caFile: made.caFile, ...some }, mode)
      return { results, input: there.input() }
    }
    test('a valid certificate is ok, and its remaining days are evaluated', async () => {
      const { results } = await over('good', {}, 'Advanced')
      expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
      await finds(results, ['certificate', /in 89\.9 d/])
      await finds(over('fiveDays', {}, 'Advanced'), 'certificate warning')
    })
  })
})

peerSuite(rabbitmqMissing, 'a RabbitMQ that collects no statistics', () => {
  let server: RabbitmqServer
  beforeAll(async () => {
    server = await startRabbitmq({ settings: ['management_agent.disable_metrics_collector = true'] })
    await server.api('PUT', 'queues/%2f/orders', { durable: true })
    await server.api('PUT', 'users/limited', { password: 'secret-9', tags: 'monitoring' })
    await server.api('PUT', 'permissions/%2f/limited', { configure: '^$', write: '^$', read: '^$' })
  }, 90_000)
  afterAll(() => server.remove(), 30_000)
  /** Only these settings count as those of svc.yaml. */
  const run = (some: Overrides = {}, mode: Mode = 'Advanced') =>
    runKind(rabbitmq, { url: server.url, username: 'limited', password: secret('secret-9'), ...some }, mode)

  test('H57 it is healthy, and the report says what is switched off', async () => {
    const { queues = [], deadLetters = [] } = withAccount({
      queues: [{ name: 'orders' }],
      deadLetters: [{ name: 'orders' }],
    })
    const results = await run({ queues, deadLetters, messages: { limit: 100 }, nodes: 1 })
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    const names = ['management', 'sign-in', 'messages', 'node', 'alarms', 'cluster', 'virtual hosts', 'all queues']
    expect(results.map(({ check }) => check)).toEqual([...names, 'queue', 'dead letters'])
    await finds(results, ['sign-in', /collects no statistics \(management_agent\.disable_metrics_collector = true\)$/])
    expect(checked(results, 'sign-in').details).toEqual([expect.stringMatching(/^not seen: memory, file descriptors,/)])
  })

  test('H57 its alarms come from its health check', async () => {
    server.ctl('set_vm_memory_high_watermark', 'absolute', '1MB')
    const alarm = async () => checked(await run(), 'alarms')
    try {
      await until(async () => (await alarm()).status === 'failed')
      expect((await alarm()).message).toBe(
        `memory alarm on ${server.node}: all publishers of the cluster are blocked until it clears`,
      )
    } finally {
      server.ctl('set_vm_memory_high_watermark', '0.4')
    }
    await until(async () => (await alarm()).status === 'ok')
  })

  test('H57 a virtual host that does not run fails', async () => {
    await server.api('PUT', 'vhosts/second', {})
    server.ctl('eval', 'rabbit_vhost_sup_sup:stop_and_delete_vhost(<<"second">>).')
    await finds(run(), 'virtual hosts failed (data): …virtual hosts that do not run: second…')
  })

  test('H57 what svc.yaml demands and the server does not collect is not checked', async () => {
    const { queues = [] } = withAccount({ queues: [{ name: 'orders', consumers: 2 }] })
    const results = await run({ queues, memory: { limit: 90 } }, 'Standard')
    await finds(results, 'memory failed: …does not report this…', 'consumers failed: …does not report its consumers…')
  })
})
