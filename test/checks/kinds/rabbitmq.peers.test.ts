import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import rabbitmq from '../../../src/core/checks/kinds/rabbitmq/index.ts'
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
  /** Declares a queue with some messages in it. */
  const declare = async (name: string, messages: number, properties: object = {}): Promise<void> => {
    await server.api('PUT', `queues/%2f/${name}`, { durable: true })
    for (let i = 0; i < messages; i += 1) await server.publish(name, properties)
  }
  /** The server gathers its figures now and then. */
  const counted = async (name: string, ready: number, consumers: number): Promise<void> => {
    const come = async (): Promise<boolean> => {
      const queue = (await server.api('GET', `queues/%2f/${name}`)) as Record<string, unknown>
      return queue.messages_ready === ready && queue.consumers === consumers
    }
    await until(come, 30_000, 100)
  }
  let started: readonly number[] = []
  beforeAll(async () => {
    server = await startRabbitmq()
    started = server.processes()
    await declare('orders', 3, { timestamp: Math.floor(Date.now() / 1_000) - 120 })
    await declare('dead', 1)
    await declare('empty', 0)
    const consumer = await server.consume('orders', 1)
    afterAll(() => void consumer.destroy())
    const idle = await server.consume('empty', 1)
    afterAll(() => void idle.destroy())
    await counted('orders', 2, 1)
    await counted('dead', 1, 0)
    await counted('empty', 0, 1)
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
    test('it reports what it observes', async () => {
      const results = await run({}, 'Standard')
      expect(checked(results, 'sign-in').message).toMatch(/^signed in, RabbitMQ \d+\.\d+/)
      expect(checked(results, 'node').message).toBe('1 node is running')
      expect(checked(results, 'memory').message).toMatch(
        /^svc\d+@localhost: \d+ MiB of [\d.]+ GiB \(high watermark\): [\d.]+ % \(warn 80 %, fail 95 %\)$/,
      )
      expect(checked(results, 'file descriptors').message).toMatch(/\d+ of \d+ file descriptors: /)
    })
  })

  describe('queues', () => {
    test('ready messages, consumers and unacknowledged messages are evaluated', async () => {
      const some = queue('orders', { ready: { warn: 1, limit: 5 }, unacknowledged: { limit: 0 }, consumers: 2 })
      const results = await run(some, 'Standard')
      expect(checked(results, 'queue')).toMatchObject({
        status: 'warning',
        message: 'queue "orders": messages ready: 2 (warn 1, fail 5)',
      })
      expect(checked(results, 'consumers')).toMatchObject({
        status: 'failed',
        fault: 'data',
        measurement: { value: 1, limit: 2 },
      })
      expect(checked(results, 'unacknowledged')).toMatchObject({
        status: 'failed',
        fault: 'threshold',
        measurement: { value: 1 },
      })
    })
    test('a queue without consumers fails', async () => {
      const findQueue = await one('consumers', queue('dead'), 'Standard')
      expect(findQueue.message).toBe('queue "dead": 0 consumers (fail below 1): check the workers, not the server')
    })
    test('Advanced: the age of the message at its head, and idle consumers, are evaluated', async () => {
      const results = await run({ ...queue('orders'), stalled: 1_500 }, 'Advanced')
      expect(checked(results, 'oldest message')).toMatchObject({
        status: 'warning',
        measurement: { unit: 'milliseconds' },
      })
      expect(checked(results, 'oldest message').message).toMatch(/^queue "orders": oldest message has waited [2-9]/)
      const stuck = checked(results, 'stalled')
      expect(stuck).toMatchObject({ status: 'warning' })
      expect(stuck.message).toBe(
        'queue "orders": 2 messages ready, none delivered in 1.5 s to 1 consumer with 1 unacknowledged: are they stuck?',
      )
    })
    test('Advanced: dead letters are evaluated', async () => {
      const findQueue = await one('dead letters', { deadLetters: [{ name: 'dead' }] }, 'Advanced')
      expect(findQueue).toMatchObject({ status: 'warning', message: 'queue "dead": dead letters: 1 (warn 0, fail 10)' })
    })
    test('a missing queue or vhost fails and does not hide others', async () => {
      const queues = [{ name: 'gone' }, { name: 'empty', vhost: 'else where/' }, { name: 'empty' }]
      const results = (await run({ queues }, 'Standard')).filter(({ check }) => check === 'queue')
      expect(results.map(({ status }) => status)).toEqual(['failed', 'failed', 'ok'])
      expect(results[0]?.message).toBe(`${server.address} has no queue "gone" in the vhost "/"`)
    })
    test('a queue that was just declared is counted, although it has no statistics', async () => {
      await declare('fresh', 1)
      expect(await one('queue', queue('fresh'), 'Standard')).toMatchObject({ status: 'ok', measurement: { value: 1 } })
    })
  })

  describe('an account with too few permissions', () => {
    const as = (username: string): object => ({ username, password: secret('secret-9') })
    beforeAll(async () => {
      for (const [name, tags] of [
        ['nobody', ''],
        ['manager', 'management'],
        ['monitor', 'monitoring'],
      ] as const) {
        await server.api('PUT', `users/${name}`, { password: 'secret-9', tags })
      }
    })
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const invalid = { password: secret('hunter2-wrong') }
      const findQueue = await one('sign-in', invalid, 'Standard', { limits: shared, retries: 3 })
      expect(findQueue).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(findQueue.message).toContain('refused the sign-in of "administrator": Login failed')
      expect(JSON.stringify(findQueue)).not.toContain('hunter2')
      expect((await one('sign-in', invalid, 'Standard', { limits: shared })).message).toMatch(
        /^refused: (?!\S+ refused)/,
      )
    })
    test('an account without the right tag is reported with the missing tag, and is not a refused sign-in', async () => {
      const findQueue = await one('sign-in', as('nobody'), 'Standard')
      expect(findQueue).toMatchObject({
        status: 'failed',
        notChecked: 'permission',
        message: 'not checked: "nobody" has no permission to read overview: Not management user',
        details: ['rabbitmqctl set_user_tags nobody monitoring'],
      })
      const results = await run({ ...as('manager'), ...queue('empty') }, 'Standard')
      expect(checked(results, 'sign-in').status).toBe('ok')
      expect(checked(results, 'node')).toMatchObject({ status: 'warning', notChecked: 'permission' })
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
    test('an account without permission in the vhost does not see its queues', async () => {
      const results = await run({ ...as('monitor'), ...queue('empty') }, 'Standard')
      expect(checked(results, 'node').status).toBe('ok')
      expect(checked(results, 'queue')).toMatchObject({
        status: 'failed',
        notChecked: 'permission',
        details: ['rabbitmqctl set_permissions -p <vhost> monitor "^$" "^$" "^$"'],
      })
      expect(checked(results, 'queue').message).toContain('User not authorised to access virtual host')
    })
  })

  describe('a server in trouble', () => {
    test('a frozen server ends at the deadline', async () => {
      server.freeze()
      try {
        expect(await one('management', {}, 'Basic', { timeoutMs: 400 })).toMatchObject({ fault: 'timeout' })
      } finally {
        server.thaw()
      }
    })
    test('slow: answers that are each 150 ms late exceed the threshold', async () => {
      await using slow = await proxy(server.port, 150)
      const some = { url: `http://127.0.0.1:${slow.port}`, latency: { warn: 50, limit: 100 } }
      expect(await one('management', some)).toMatchObject({
        status: 'failed',
        fault: 'threshold',
        measurement: { limit: 100 },
      })
    })
    test('a memory alarm is reported, with its consequence', async () => {
      const alarms = async (status: string): Promise<Result> => {
        const findQueue = async () => {
          const result = await one('alarms', {}, 'Standard')
          return result.status === status && result
        }
        return await until(findQueue, 30_000, 100)
      }
      server.ctl('set_vm_memory_high_watermark', 'absolute', '1000')
      try {
        const failure = await alarms('failed')
        expect(failure.fault).toBe('data')
        expect(failure.message).toMatch(
          /^memory alarm on svc\d+@localhost \(\d+ MiB used\): all publishers of the cluster are blocked until it clears$/,
        )
        expect(await one('memory', {}, 'Standard')).toMatchObject({ status: 'failed', fault: 'threshold' })
      } finally {
        server.ctl('set_vm_memory_high_watermark', '0.6')
        await alarms('ok')
      }
    }, 30_000)
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
      expect(checked(results, 'certificate').message).toMatch(/in 89\.9 d/)
      const soon = await over('fiveDays', {}, 'Advanced')
      expect(checked(soon.results, 'certificate').status).toBe('warning')
    })
    test('an expired certificate, a wrong name and an unknown CA are tls, and nothing is sent', async () => {
      for (const [output, some] of [
        ['expired', {}],
        ['otherHost', {}],
        ['good', { caFile: undefined }],
      ] as const) {
        const { results, input } = await over(output, some, 'Standard')
        expect(results).toMatchObject([{ check: 'management', status: 'failed', fault: 'tls' }])
        expect(input).not.toContain('GET')
      }
    })
  })
})
