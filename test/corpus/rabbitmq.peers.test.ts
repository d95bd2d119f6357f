import { administrator, type RabbitmqServer, rabbitmqMissing, startRabbitmq } from '../support/servers/rabbitmq.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const env = { ADMIN: administrator.password, WRONG: 'another password', LIMITED: 'correct-horse-9' }

const monitor =
  (more: object = {}) =>
  ({ url }: RabbitmqServer) => ({
    kind: 'rabbitmq',
    url,
    username: administrator.username,
    password: { env: 'ADMIN' },
    ...more,
  })
const queue = (name: string) => `queues/%2f/${name}`

/** A new queue has no statistics for a second or two. */
const reported = (api: RabbitmqServer['api'], name: string): Promise<unknown> =>
  until(async () => ((await api('GET', queue(name))) as { messages_ready?: number }).messages_ready !== undefined)

/** An account that may use the management, and sees none of its nodes. */
const managementUser = async ({ ctl }: RabbitmqServer) => {
  ctl('add_user', 'limited', env.LIMITED)
  ctl('set_user_tags', 'limited', 'management')
  return () => void ctl('delete_user', 'limited')
}

const rows: readonly Row<RabbitmqServer>[] = [
  {
    fault: 'healthy',
    monitor: monitor({ messages: { warn: 1000 }, nodes: 1 }),
    expected: { state: 'healthy' },
    peers: ({ port }) => [{ program: 'check_tcp', args: ['-H', '127.0.0.1', '-p', String(port)] }],
  },
  {
    fault: 'the password was changed',
    monitor: monitor({ password: { env: 'WRONG' } }),
    expected: fails('sign-in', 'auth', /"administrator": Login failed/),
  },
  {
    fault: 'the account is not a monitoring user',
    monitor: monitor({ username: 'limited', password: { env: 'LIMITED' } }),
    plant: async ({ ctl }) => {
      ctl('add_user', 'limited', env.LIMITED)
      return () => void ctl('delete_user', 'limited')
    },
    expected: notChecked('sign-in', /to read overview: Not management user$/),
    before: 'warning, exit code 0',
  },
  {
    fault: 'the account may not see the nodes',
    monitor: monitor({ username: 'limited', password: { env: 'LIMITED' } }),
    plant: managementUser,
    expected: warns('node', /"limited" has no permission to read nodes/),
  },
  {
    fault: 'the account may not see the nodes, whose memory svc.yaml limits',
    monitor: monitor({ username: 'limited', password: { env: 'LIMITED' }, memory: { limit: '90%' } }),
    plant: managementUser,
    expected: notChecked('memory', /"limited" has no permission to read nodes/),
    before: 'warning, exit code 0',
  },
  {
    fault: 'a configured queue is missing',
    monitor: monitor({ queues: [{ name: 'missing' }] }),
    expected: fails('queue', 'any', / has no queue "missing" in the vhost "\/"/),
  },
  {
    fault: 'a queue without a consumer',
    monitor: monitor({ queues: [{ name: 'orders' }] }),
    plant: async ({ api }) => {
      await api('PUT', queue('orders'), { durable: true })
      await reported(api, 'orders')
      return async () => void (await api('DELETE', queue('orders')))
    },
    expected: fails('consumers', 'any', /"orders": 0 consumers .*: check the workers/),
  },
  {
    fault: 'a queue with too many messages',
    monitor: monitor({ queues: [{ name: 'full', consumers: 0, ready: { warn: 1, limit: 2 } }] }),
    plant: async ({ api, publish }) => {
      await api('PUT', queue('full'), { durable: true })
      for (let count = 0; count < 4; count += 1) await publish('full')
      await until(async () => ((await api('GET', queue('full'))) as { messages_ready?: number }).messages_ready === 4)
      return async () => void (await api('DELETE', queue('full')))
    },
    expected: fails('queue', 'threshold', /ready: 4 \(warn 1, fail 2\)$/),
  },
  {
    fault: 'a memory alarm blocks publishers',
    monitor: monitor(),
    plant: async ({ ctl, api }) => {
      ctl('set_vm_memory_high_watermark', '0.0001')
      await until(async () => ((await api('GET', 'nodes')) as { mem_alarm?: boolean }[]).some((node) => node.mem_alarm))
      return async () => {
        ctl('set_vm_memory_high_watermark', '0.4')
        await until(async () =>
          ((await api('GET', 'nodes')) as { mem_alarm?: boolean }[]).every((node) => node.mem_alarm === false),
        )
      }
    },
    expected: fails('alarms', 'any', /^memory alarm on .*: all publishers .* blocked/),
    peers: ({ port }) => [{ program: 'check_tcp', args: ['-H', '127.0.0.1', '-p', String(port)] }],
  },
  {
    fault: 'a disk alarm blocks publishers',
    monitor: monitor(),
    plant: async ({ ctl, api }) => {
      ctl('set_disk_free_limit', '900GB')
      await until(async () =>
        ((await api('GET', 'nodes')) as { disk_free_alarm?: boolean }[]).some((node) => node.disk_free_alarm),
      )
      return () => void ctl('set_disk_free_limit', '1MB')
    },
    expected: fails('alarms', 'any', /disk/),
    peers: ({ port }) => [{ program: 'check_tcp', args: ['-H', '127.0.0.1', '-p', String(port)] }],
  },
  {
    fault: 'nothing listens on the port',
    monitor: monitor({ url: 'http://127.0.0.1:1' }),
    expected: fails('management', 'refused', /refused/),
  },
]

corpus<RabbitmqServer>({
  server: 'RabbitMQ 3.10.8',
  env,
  missing: rabbitmqMissing,
  start: async () => {
    const server = await startRabbitmq()
    // The totals have no statistics before the first message.
    await server.api('PUT', queue('first'), { durable: true })
    await server.publish('first')
    const totals = async (): Promise<unknown> =>
      ((await server.api('GET', 'overview')) as { queue_totals?: { messages_ready?: number } }).queue_totals
        ?.messages_ready
    await until(async () => (await totals()) !== undefined)
    return server
  },
  rows,
})
