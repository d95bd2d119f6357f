import { administrator, type RabbitmqServer, rabbitmqMissing, startRabbitmq } from '../support/servers/rabbitmq.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const env = { ADMIN: administrator.password, WATCH: 'correct-horse-9' }

const monitor =
  (more: object = {}) =>
  ({ url }: RabbitmqServer) => ({
    kind: 'rabbitmq',
    url,
    username: administrator.username,
    password: { env: 'ADMIN' },
    ...more,
  })
const path = (name: string) => `queues/%2f/${name}`

type Figures = { messages_ready?: number; messages_unacknowledged?: number; consumers?: number }
const figures = (server: RabbitmqServer, name: string, holds: (queue: Figures) => boolean): Promise<unknown> =>
  until(async () => holds((await server.api('GET', path(name))) as Figures), 30_000)

/** A queue with so many messages. */
async function queueOf(server: RabbitmqServer, name: string, messages: number, properties: object = {}) {
  await server.api('PUT', path(name), { durable: true })
  for (let n = 0; n < messages; n += 1) await server.publish(name, properties)
  await figures(server, name, (queue) => queue.messages_ready === messages)
  return async () => void (await server.api('DELETE', path(name)))
}

const rows: readonly Row<RabbitmqServer>[] = [
  {
    fault: 'a worker takes messages and acknowledges none',
    blind: 'held',
    monitor: monitor({ queues: [{ name: 'orders', unacknowledged: { limit: 2 } }] }),
    plant: async (server) => {
      const end = await queueOf(server, 'orders', 5)
      const worker = await server.consume('orders', 10)
      await figures(server, 'orders', (queue) => queue.messages_unacknowledged === 5 && queue.consumers === 1)
      return async () => {
        worker.destroy()
        await end()
      }
    },
    expected: fails('unacknowledged', 'threshold', /\b5\b/),
  },
  {
    fault: 'the only worker hangs in its first message',
    blind: 'wrong expectation',
    monitor: monitor({ timeout: '25s', queues: [{ name: 'orders' }] }),
    plant: async (server) => {
      const end = await queueOf(server, 'orders', 5)
      const worker = await server.consume('orders', 1)
      await figures(server, 'orders', (queue) => queue.messages_unacknowledged === 1 && queue.messages_ready === 4)
      // The rate of the one delivery is forgotten.
      await new Promise((resolve) => setTimeout(resolve, 6_000))
      return async () => {
        worker.destroy()
        await end()
      }
    },
    expected: warns('stalled', /"orders".*deliver/),
  },
  {
    fault: 'messages arrive in the dead-letter queue',
    blind: 'held',
    monitor: monitor({ deadLetters: [{ name: 'orders.dead' }] }),
    plant: (server) => queueOf(server, 'orders.dead', 12),
    expected: fails('dead letters', 'threshold', /\b12\b/),
  },
  {
    fault: 'one dead letter',
    blind: 'held',
    monitor: monitor({ deadLetters: [{ name: 'orders.dead' }] }),
    plant: (server) => queueOf(server, 'orders.dead', 1),
    expected: warns('dead letters', /\b1\b/),
  },
  {
    fault: 'an empty dead-letter queue, which has no consumer',
    blind: 'held',
    monitor: monitor({ deadLetters: [{ name: 'orders.dead' }] }),
    plant: (server) => queueOf(server, 'orders.dead', 0),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the oldest message has waited for an hour',
    blind: 'held',
    monitor: monitor({ queues: [{ name: 'orders', consumers: 0 }] }),
    plant: (server) => queueOf(server, 'orders', 1, { timestamp: Math.floor(Date.now() / 1_000) - 3_600 }),
    expected: fails('oldest message', 'threshold', /1 h/),
  },
  {
    fault: 'a node of the cluster is missing',
    blind: 'held',
    monitor: monitor({ nodes: 2 }),
    expected: fails('cluster', 'any', /\b1\b.*\b2\b/),
  },
  {
    fault: 'the virtual host was removed',
    blind: 'held',
    monitor: monitor({ queues: [{ name: 'orders', vhost: 'shop' }] }),
    expected: fails('queue', 'any', /shop/),
  },
  {
    fault: 'the account may not see the virtual host of a configured queue',
    blind: 'false green',
    monitor: monitor({ username: 'watch', password: { env: 'WATCH' }, queues: [{ name: 'orders', consumers: 0 }] }),
    plant: async (server) => {
      const end = await queueOf(server, 'orders', 0)
      server.ctl('add_user', 'watch', env.WATCH)
      server.ctl('set_user_tags', 'watch', 'monitoring')
      return async () => {
        server.ctl('delete_user', 'watch')
        await end()
      }
    },
    expected: notChecked('queue', /permission/),
  },
  {
    fault: 'RabbitMQ is stopped inside of its Erlang node (stop_app)',
    blind: 'held',
    monitor: monitor(),
    plant: async ({ ctl, api }) => {
      ctl('stop_app')
      return async () => {
        ctl('start_app')
        await until(async () => {
          try {
            return ((await api('GET', 'nodes')) as { mem_alarm?: boolean }[]).some((node) => node.mem_alarm === false)
          } catch {
            return false
          }
        }, 60_000)
      }
    },
    expected: fails('management', 'refused', /refused/),
  },
]

corpus<RabbitmqServer>({ server: 'RabbitMQ, blind rows', env, missing: rabbitmqMissing, start: startRabbitmq, rows })
