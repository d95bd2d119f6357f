import { describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { allQueues, type ListedQueue } from '../../../src/core/checks/kinds/rabbitmq/all-queues.ts'
import rabbitmq from '../../../src/core/checks/kinds/rabbitmq/index.ts'
import * as ofNodes from '../../../src/core/checks/kinds/rabbitmq/nodes.ts'
import * as ofQueues from '../../../src/core/checks/kinds/rabbitmq/queues.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, evaluated, runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'
import {
  type Behaviour,
  cutAfter,
  endless,
  escapeSequences,
  http,
  hugeHeaders,
  peer,
  replies,
  reset,
} from '../../support/faults/faults.ts'
import { administrator } from '../../support/servers/rabbitmq.ts'
import { hungUp } from '../../support/suite/until.ts'

type RabbitmqSettings = Values<typeof rabbitmq.settings>
type Overrides = Partial<RabbitmqSettings>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const word = administrator.password
const account: Overrides = { username: administrator.username, password: secret(word) }

/** Settings of queues as svc.yaml gives them, defaults filled in. */
const withAccount = (some: object): Overrides =>
  withDefaults(rabbitmq.settings, { url: 'http://h', ...account, ...some } as Overrides)

describe('rabbitmq peers that misbehave', () => {
  const resultsOf = async (
    behave: Behaviour,
    mode: Mode = 'Standard',
    timeoutMs = 3_000,
  ): Promise<readonly Result[]> => {
    await using there = await peer(behave)
    const results = await runKind(rabbitmq, withAccount({ url: `http://127.0.0.1:${there.port}` }), mode, { timeoutMs })
    await hungUp(there)
    return results
  }
  /** Answers anonymous requests with a 401, and those of the account as given. */
  const answers = (body: string | ((path: string) => string)): Behaviour =>
    replies((text) => {
      if (!/authorization/i.test(text)) return http(401, '')
      return typeof body === 'string' ? body : body(/^GET (\S+)/.exec(text)?.[1] ?? '')
    })
  const json = (value: unknown): string => http(200, JSON.stringify(value))
  test('another server on that port is reported', async () => {
    const at = async (answer: string): Promise<string> =>
      checked(await resultsOf(replies(answer)), 'management').message
    expect(await at(http(404, 'nothing'))).toContain('no RabbitMQ management API there (is the plugin enabled?)')
    expect(await at(http(301, '', { Location: 'https://else.test:15671/' }))).toContain(
      '301 to https://else.test:15671/',
    )
    expect(await at(http(200, '<html>'))).toContain('200, but not with JSON')
    expect(await at(http(503, ''))).toContain('answered 503')
  })
  test('a server that is not the management API has one result, and gets no password', async () => {
    await using there = await peer(replies(http(404, 'nothing')))
    const results = await runKind(rabbitmq, withAccount({ url: `http://127.0.0.1:${there.port}` }), 'Advanced')
    expect(results.map(({ check, status }) => [check, status])).toEqual([['management', 'failed']])
    expect(there.input()).not.toMatch(/authorization/i)
  })
  test('a redirect is never followed, so the password goes nowhere else', async () => {
    await using other = await peer(replies(json({})))
    const away = http(302, '', { Location: `http://127.0.0.1:${other.port}/api/overview` })
    expect(checked(await resultsOf(answers(away)), 'sign-in')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(other.connections()).toBe(0)
  })
  test('incomplete, reset, endless, huge and deep answers are protocol or data faults, and end', async () => {
    const status = async (behave: Behaviour): Promise<string> => {
      const bad = (await resultsOf(behave)).find(({ status: findQueue }) => findQueue === 'failed')
      return `${bad?.check} ${bad?.fault}`
    }
    expect(await status(cutAfter(60, json({ a: 'x'.repeat(200) })))).toBe('management protocol')
    expect(await status(reset)).toBe('management protocol')
    expect(await status(replies(hugeHeaders(64 * 1024)))).toBe('management protocol')
    expect(await status(endless('HTTP/1.1 200 OK\r\n\r\n'))).toBe('management protocol')
    expect(await status(answers(http(200, '['.repeat(1_000_000))))).toBe('sign-in protocol')
    const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
    expect(await status(answers((path) => (path.includes('nodes') ? http(200, deep) : json({}))))).toMatch(/^node /)
  })
  test('escape sequences and the configured password are not repeated', async () => {
    const packed = Buffer.from(`${administrator.username}:${word}`).toString('base64')
    const hostile = `${escapeSequences} ${word} ${packed}`
    const results = [
      ...(await resultsOf(answers(http(401, JSON.stringify({ reason: hostile }))))),
      ...(await resultsOf(
        answers((path) =>
          path.includes('nodes') ? json([{ name: hostile, running: false }]) : json({ rabbitmq_version: hostile }),
        ),
      )),
    ]
    expect(results.filter(({ status }) => status === 'failed').length).toBeGreaterThan(1)
    expect(JSON.stringify(results)).not.toMatch(/\\u001b|\\u202e|\\u0007/)
    expect(JSON.stringify(results)).not.toContain(word)
    expect(JSON.stringify(results)).not.toContain(packed)
  })
  test('values of the wrong type count as missing, never as ok', async () => {
    const strange = answers((path) => (path.includes('nodes') ? json([7, null, 'x']) : json({ queue_totals: [] })))
    expect(checked(await resultsOf(strange), 'node')).toMatchObject({ status: 'failed' })
    const empty = answers((path) => (path.includes('nodes') ? json({}) : json([])))
    expect(checked(await resultsOf(empty), 'node')).toMatchObject({ status: 'failed', fault: 'protocol' })
  })
  test('all nodes that the server lists are evaluated (simulated)', async () => {
    const all = Array.from({ length: 250 }, (_, at) => ({ name: `n${at}`, running: at < 249, mem_alarm: false }))
    const many = answers((path) => (path.includes('nodes') ? json(all) : json({})))
    expect(checked(await resultsOf(many), 'node').message).toBe('n249 not running; 249 of 250 nodes are')
  })
  test('a password does not leave this machine over http', async () => {
    const resolve = () => Promise.resolve(['192.0.2.1'])
    const options = { resolve, timeoutMs: 300 }
    const results = await runKind(rabbitmq, withAccount({ url: 'http://queue.test:15672' }), 'Standard', options)
    expect(JSON.stringify(results)).not.toContain(word)
    expect(results.some(({ status }) => status === 'ok')).toBe(false)
  })
})

describe('rabbitmq evaluation', () => {
  const settings = (some: object = {}): RabbitmqSettings => withAccount(some) as RabbitmqSettings
  const evaluateNodes = (
    nodes: readonly ofNodes.RabbitmqNode[],
    some: { readonly nodes?: number } = {},
  ): readonly Result[] => [
    ...evaluated(ofNodes.node, nodes),
    ...evaluated(ofNodes.alarms, nodes),
    ...evaluated(ofNodes.memory, nodes),
    ...evaluated(ofNodes.fileDescriptors, nodes),
    ...evaluated(ofNodes.sockets, nodes),
    ...evaluated(ofNodes.partitions, nodes),
    ...evaluated(ofNodes.cluster, nodes, some),
  ]
  const node: ofNodes.RabbitmqNode = {
    name: 'a',
    running: true,
    memoryAlarm: false,
    diskAlarm: false,
    memory: { used: 80, of: 100 },
    fileDescriptors: { used: 5, of: 100 },
    sockets: undefined,
    diskFree: { used: 5, of: 10 },
    drained: undefined,
    partitions: [],
  }
  const nodes = (...some: readonly Partial<ofNodes.RabbitmqNode>[]): readonly ofNodes.RabbitmqNode[] =>
    some.map((one) => ({ ...node, ...one }))
  const queue: ofQueues.Queue = {
    state: 'running',
    node: '',
    counted: true,
    ready: 5,
    unacknowledged: 1,
    consumers: 1,
    head: 0,
    delivered: 10,
    rate: 0,
  }
  const of = { name: 'q', vhost: '/', ready: { warn: 5, limit: 6 }, consumers: 1, oldest: { warn: 60_000 } }
  const levels = (results: readonly Result[]): string =>
    results.map(({ check, status }) => `${check} ${status}`).join(', ')

  test('values are ok at their boundaries; the fullest node decides', () => {
    const memory = (...used: readonly number[]): Result =>
      checked(
        evaluateNodes(nodes(...used.map((one) => ({ name: `n${one}`, memory: { used: one, of: 100 } })))),
        'memory',
      )
    expect([80, 81, 95, 96].map((used) => memory(used).status)).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect(memory(10, 96, 20)).toMatchObject({ status: 'failed', message: expect.stringContaining('n96: ') })
  })
  test('nodes that do not run, alarms, partitions and a small cluster fail', () => {
    const broken = nodes({ running: false, name: 'b' }, { diskAlarm: true, partitions: ['b'] })
    expect(levels(evaluateNodes(broken, { nodes: 2 }))).toBe(
      'node failed, alarms failed, memory ok, file descriptors ok, partitions failed, cluster failed',
    )
    expect(checked(evaluateNodes(broken), 'node').message).toBe('b not running; 1 of 2 nodes are')
    expect(checked(evaluateNodes(broken), 'alarms').message).toContain('disk alarm on a (5 B free)')
  })
  test('what a running node does not report is not checked', () => {
    const silent = evaluateNodes(
      nodes(
        {},
        {
          memoryAlarm: undefined,
          memory: undefined,
          fileDescriptors: undefined,
          sockets: { used: 1, of: 2 },
          partitions: undefined,
        },
      ),
    )
    for (const check of ['alarms', 'memory', 'file descriptors', 'sockets', 'partitions'])
      expect(checked(silent, check)).toMatchObject({ status: 'failed', notChecked: 'missing' })
    const full = nodes({ memory: { used: 99, of: 100 } }, { memory: undefined, diskAlarm: undefined })
    expect(checked(evaluateNodes(full), 'memory')).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(checked(evaluateNodes(full), 'alarms')).toMatchObject({ notChecked: 'missing' })
  })
  test('where no node runs, only that is reported', () => {
    const down = nodes({ running: false }, { running: false, name: 'b' })
    expect(evaluateNodes(down)).toMatchObject([{ check: 'node' }])
  })
  test('figures of a queue that the server does not report are not checked', () => {
    const reading = { of: { ...of, unacknowledged: { warn: 1 } }, date: new Date(0), observation: queue }
    const without = { ...reading, observation: { ...queue, consumers: undefined, unacknowledged: undefined } }
    for (const check of [ofQueues.consumers, ofQueues.unacknowledged]) {
      expect(evaluated(check, reading)[0]).toMatchObject({ status: 'ok' })
      expect(evaluated(check, without)[0]).toMatchObject({ status: 'failed', notChecked: 'missing' })
    }
    const letters = { of: { name: 'q', vhost: '/', messages: { warn: 9 } }, observation: without.observation }
    expect(evaluated(ofQueues.deadLetters, letters)[0]).toMatchObject({ notChecked: 'missing' })
  })
  test('queue: ready, consumers, age; a queue that does not serve has one result', () => {
    const at = (more: Partial<ofQueues.Queue>, date = 60_000): string => {
      const reading = { of, date: new Date(date), observation: { ...queue, ...more } }
      return levels([
        ...evaluated(ofQueues.queue, reading),
        ...evaluated(ofQueues.consumers, reading),
        ...evaluated(ofQueues.unacknowledged, reading),
        ...evaluated(ofQueues.oldestMessage, reading),
      ])
    }
    expect(at({})).toBe('queue ok, consumers ok, oldest message ok')
    expect(at({ ready: 6 }, 60_001)).toBe('queue warning, consumers ok, oldest message warning')
    expect(at({ ready: 7, consumers: 0 })).toBe('queue failed, consumers failed, oldest message ok')
    expect(at({ head: undefined })).toBe('queue ok, consumers ok')
    expect(at({ ready: 0 })).toBe('queue ok, consumers ok')
    expect(at({ ready: undefined })).toBe('queue warning')
    expect(at({ state: 'crashed' })).toBe('queue failed')
  })
  test('deliveries: only a queue without progress between two looks is stalled', () => {
    const at = (before: Partial<ofQueues.Queue>, after: Partial<ofQueues.Queue>): string =>
      levels(
        evaluated(ofQueues.stalled, {
          of,
          before: { ...queue, ...before },
          ms: 1,
          observation: { ...queue, ...after },
        }),
      )
    expect(at({}, {})).toBe('stalled warning')
    expect(at({}, { delivered: 11 })).toBe('stalled ok')
    expect(at({}, { ready: 0 })).toBe('stalled ok')
    expect(at({}, { rate: 0.2 })).toBe('stalled ok')
  })
  test('settings that exclude each other are reported; the target is host and port', () => {
    expect(rabbitmq.validate?.(settings({ url: 'http://h:15672' }))).toBeUndefined()
    expect(rabbitmq.validate?.(settings({ url: 'http://me@h' }))).toContain('user')
    expect(rabbitmq.validate?.(settings({ username: 'a:b' }))).toContain('colon')
    expect(rabbitmq.target?.(settings({ url: 'http://[::1]:15672/x' }))).toEqual({ host: '::1', port: 15_672 })
  })
})

describe('all queues of a server', () => {
  const listed = (name: string, more: Partial<ListedQueue> = {}): ListedQueue => ({
    ...{ name, vhost: '/', state: 'running', node: '', members: undefined, online: undefined },
    ...{ ready: 0, unacknowledged: 0 },
    ...more,
  })
  const judge = (queues: readonly ListedQueue[], total = queues.length): Result => {
    const [result] = evaluated(allQueues, { queues, total, hidden: undefined })
    if (!result) throw new Error('no result')
    return result
  }
  test.each([
    [3, 3, 'ok'],
    [3, 2, 'warning'],
    [3, 1, 'failed'],
    [2, 1, 'failed'],
    [1, 1, 'ok'],
    [1, 0, 'failed'],
    [5, 3, 'warning'],
  ])('of %i members of a quorum queue, %i online: %s', (members, online, status) => {
    expect(judge([listed('orders', { members, online })])).toMatchObject({ status })
  })
  test.each(['running', 'idle', 'live', 'flow', ''])('a queue in the state "%s" is served', (state) => {
    expect(judge([listed('orders', { state })]).status).toBe('ok')
  })
  test('queues that are not served come before queues with members down, with their vhosts', () => {
    const queues = [
      listed('a', { members: 3, online: 2 }),
      listed('b', { vhost: 'shop', state: 'down', node: 'rabbit@c' }),
      listed('c', { state: 'minority' }),
    ]
    expect(judge(queues)).toMatchObject({
      status: 'failed',
      message: '2 of 3 queues not served: "b" in "shop": is "down", its home node is rabbit@c; "c": is "minority"',
      measurement: { value: 2 },
    })
  })
  test('a part of the queues is named as a part', () => {
    expect(judge([listed('a')], 6_000).message).toBe('the first 1 of 6000 queues are served')
    expect(judge([listed('a', { state: 'down' })], 6_000).message).toMatch(/^1 of 1 queue \(6000 in all\) not served/)
  })

  /** A management that answers each path, with the account of the tests (simulated). */
  const served = async (
    answer: (path: string) => string,
    mode: Mode,
    some: object = {},
  ): Promise<readonly Result[]> => {
    const nodes = [{ name: 'a', running: true, mem_alarm: false, disk_free_alarm: false, being_drained: false }]
    await using there = await peer(
      replies((text) => {
        if (!/authorization/i.test(text)) return http(401, '')
        const path = /^GET \/api\/(\S+)/.exec(text)?.[1] ?? ''
        if (path === 'overview') return http(200, '{"rabbitmq_version":"4.1.0"}')
        if (path === 'nodes') return http(200, JSON.stringify(nodes))
        if (path.startsWith('vhosts')) return http(200, '[{"name":"/"}]')
        return answer(path)
      }),
    )
    return await runKind(rabbitmq, withAccount({ url: `http://127.0.0.1:${there.port}`, ...some }), mode)
  }
  test('every page is read (simulated)', async () => {
    const results = await served((path) => {
      const page = Number(/[?&]page=(\d+)/.exec(path)?.[1])
      const item = { name: `q${page}`, vhost: '/', state: page === 3 ? 'down' : 'running' }
      return http(200, JSON.stringify({ items: [item], page_count: 3, filtered_count: 3 }))
    }, 'Standard')
    expectResult(checked(results, 'all queues'), 'failed: 1 of 3 queues not served: "q3": is "down"')
  })
  test('a queue without statistics is counted on request, and is never stalled (simulated)', async () => {
    const results = await served(
      (path) => {
        if (path.startsWith('consumers')) return http(200, '[{"queue":{"name":"new"}},{"queue":{"name":"other"}}]')
        if (path.startsWith('queues?'))
          return http(200, '{"items":[{"name":"new","vhost":"/","messages_ready":4,"messages_unacknowledged":1}]}')
        return http(200, '{"name":"new"}')
      },
      'Advanced',
      { queues: [{ name: 'new', unacknowledged: { limit: 0 } }], stalled: 1 },
    )
    expect(checked(results, 'queue')).toMatchObject({ status: 'ok', measurement: { value: 4 } })
    expect(checked(results, 'consumers')).toMatchObject({ status: 'ok', measurement: { value: 1 } })
    expect(checked(results, 'unacknowledged')).toMatchObject({ status: 'failed', measurement: { value: 1 } })
    expect(results.some(({ check }) => check === 'stalled')).toBe(false)
  })
  test('a queue whose home node is down is not called missing (simulated)', async () => {
    const down = { name: 'home', vhost: '/', state: 'down', node: 'rabbit@c' }
    const results = await served(
      (path) => (path.startsWith('queues?') ? http(200, JSON.stringify({ items: [down] })) : http(404, '{}')),
      'Standard',
      { queues: [{ name: 'home' }] },
    )
    expect(checked(results, 'queue').message).toBe(
      'queue "home" is "down" on its home node rabbit@c and does not serve clients',
    )
  })
})

describe('maintenance mode as RabbitMQ 3.13 and later report it (simulated)', () => {
  const nodes = (...drained: readonly (boolean | undefined)[]): readonly ofNodes.RabbitmqNode[] =>
    drained.map((one, index) => ({
      ...{ name: `n${index}`, running: true, memoryAlarm: false, diskAlarm: false, memory: undefined },
      ...{ fileDescriptors: undefined, sockets: undefined, diskFree: undefined, partitions: [], drained: one },
    }))
  test('one node warns, all nodes fail, and servers that do not report it have no result', () => {
    expect(evaluated(ofNodes.maintenance, nodes(false, true))[0]).toMatchObject({
      status: 'warning',
      message: 'n1 is in maintenance mode and refuses clients',
    })
    expect(evaluated(ofNodes.maintenance, nodes(true, true))[0]).toMatchObject({
      status: 'failed',
      message: 'n0, n1 are in maintenance mode and refuse clients',
    })
    expect(evaluated(ofNodes.maintenance, nodes(false, undefined))[0]).toMatchObject({ status: 'ok' })
    expect(evaluated(ofNodes.maintenance, nodes(undefined))).toEqual([])
  })
})
