import { administrator, rabbitmqMissing } from '../support/servers/rabbitmq.ts'
import { type RabbitmqCluster, startRabbitmqCluster } from '../support/servers/rabbitmq-cluster.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { type Expected, fails, notChecked, type Row, warns } from './row.ts'

const env = { ADMIN: administrator.password, WATCH: 'correct-horse-9' }

const healthy: Expected = { state: 'healthy' }
/** Basic asks for the management without a sign-in. */
const fromStandard = (expected: Expected): Pick<Row<never>, 'expected' | 'shallower'> => ({
  expected,
  shallower: { Basic: healthy, Standard: expected },
})
const everywhere = { expected: healthy, shallower: { Basic: healthy, Standard: healthy } }
const always = (expected: Expected) => ({ expected, shallower: { Basic: expected, Standard: expected } })

const monitor =
  (more: object = {}, index: 0 | 1 | 2 = 0) =>
  ({ nodes }: RabbitmqCluster) => ({
    kind: 'rabbitmq',
    url: nodes[index].url,
    username: administrator.username,
    password: { env: 'ADMIN' },
    ...more,
  })
const watcher = { username: 'watch', password: { env: 'WATCH' } }

/** An account with a tag, and with the documented permission in the vhost or without. */
const account =
  (tag: string | undefined, mayVhost: boolean) =>
  async ({ nodes: [{ ctl }] }: RabbitmqCluster) => {
    ctl('add_user', 'watch', env.WATCH)
    if (tag !== undefined) ctl('set_user_tags', 'watch', tag)
    if (mayVhost) ctl('set_permissions', '-p', '/', 'watch', '^$', '^$', '^$')
    return () => void ctl('delete_user', 'watch')
  }

/** Consumes a queue: `consumes`, or the text of the error. */
const consumes =
  (queue: string) =>
  async ({ nodes: [first] }: RabbitmqCluster): Promise<string> => {
    try {
      const socket = await first.consume(queue)
      socket.destroy()
      return 'consumes'
    } catch (error) {
      return String(error)
    }
  }

const rows: readonly Row<RabbitmqCluster>[] = [
  {
    fault: 'a healthy cluster of three that has just started',
    env,
    monitor: monitor({
      nodes: 3,
      queues: [
        { name: 'orders', consumers: 0 },
        { name: 'home', consumers: 0 },
      ],
    }),
    client: { asks: ({ nodes: [first] }) => first.send('orders'), gets: /^RECEIPT$/ },
    ...everywhere,
  },
  {
    fault: 'a healthy cluster, with the documented account and a queue that was declared just now',
    env,
    monitor: monitor({ ...watcher, queues: [{ name: 'new', consumers: 0 }] }),
    plant: async (cluster) => {
      const end = await account('monitoring', true)(cluster)
      await cluster.declare('new', 'quorum')
      return async () => {
        await cluster.nodes[0].api('DELETE', 'queues/%2f/new')
        end()
      }
    },
    client: { asks: ({ nodes: [first] }) => first.send('new'), gets: /^RECEIPT$/ },
    ...everywhere,
  },
  {
    fault: 'a queue that was declared just now has no consumer',
    env,
    monitor: monitor({ queues: [{ name: 'new' }] }),
    plant: async ({ declare, nodes: [first] }) => {
      await declare('new', 'classic')
      return async () => void (await first.api('DELETE', 'queues/%2f/new'))
    },
    ...fromStandard(fails('consumers', 'any', /"new": 0 consumers/)),
  },
  {
    fault: 'a member of a quorum queue does not run',
    env,
    monitor: monitor(),
    plant: async ({ stopMember, nodes: [, , third] }) => stopMember('orders', third),
    client: { asks: ({ nodes: [first] }) => first.send('orders'), gets: /^RECEIPT$/ },
    ...fromStandard(warns('all queues', /"orders".*2 of 3 members online/)),
  },
  {
    fault: 'healthy: svc.yaml leaves out the queue whose member does not run',
    env,
    monitor: monitor({ skipQueues: ['/^ord/'] }),
    plant: async ({ stopMember, nodes: [, , third] }) => stopMember('orders', third),
    ...everywhere,
  },
  {
    fault: 'a quorum queue has lost its majority while all nodes run',
    env,
    monitor: monitor(),
    plant: async ({ stopMember, nodes: [, second, third] }) => {
      const starts = [second, third].map((one) => stopMember('orders', one))
      return () => {
        for (const start of starts) start()
      }
    },
    client: { asks: ({ nodes: [first] }) => first.send('orders'), gets: /^no answer$/ },
    ...fromStandard(fails('all queues', 'data', /"orders".*1 of 3 members online/)),
  },
  {
    fault: 'the home node of a queue is down',
    env,
    monitor: monitor({ queues: [{ name: 'home', consumers: 0 }] }),
    plant: async ({ nodes: [first, , third] }) => {
      third.ctl('stop_app')
      return async () => {
        third.ctl('start_app')
        await until(async () => {
          const all = (await first.api('GET', 'nodes')) as readonly { readonly mem_alarm?: boolean }[]
          return all.every((one) => one.mem_alarm === false)
        }, 60_000)
      }
    },
    client: { asks: consumes('home'), gets: /NOT_FOUND - home node/ },
    ...fromStandard(fails('node', 'any', /not running; 2 of 3/, { never: /has no queue/ })),
  },
  {
    fault: 'the account may not see the vhost, and svc.yaml names no queue',
    env,
    monitor: monitor(watcher),
    plant: account('monitoring', false),
    ...fromStandard(warns('all queues', /"watch" has no permission to read .*"\/"/)),
  },
  {
    fault: 'the account may not see the vhost of a configured queue',
    env,
    monitor: monitor({ ...watcher, queues: [{ name: 'orders', consumers: 0 }] }),
    plant: account('monitoring', false),
    ...fromStandard(notChecked('queue', /"watch" has no permission/)),
  },
  {
    fault: 'the account has no tag',
    env,
    monitor: monitor(watcher),
    plant: account(undefined, true),
    ...fromStandard(notChecked('sign-in', /"watch" has no permission/)),
  },
  {
    fault: 'the node that svc asks is in maintenance mode',
    env,
    monitor: monitor({}, 2),
    plant: async ({ nodes: [, , third] }) => {
      third.upgrade('drain')
      return () => void third.upgrade('revive')
    },
    client: { asks: ({ nodes: [, , third] }) => third.send('orders'), gets: /ECONNREFUSED/ },
    ...always(fails('management', 'refused', /refused/)),
  },
]

corpus<RabbitmqCluster>({
  server: 'RabbitMQ 3.10.8, a cluster of three',
  missing: rabbitmqMissing,
  start: async () => {
    const cluster = await startRabbitmqCluster()
    await cluster.declare('orders', 'quorum')
    await cluster.declare('home', 'classic')
    return cluster
  },
  rows,
})
