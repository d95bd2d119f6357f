import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../suite/until.ts'
import type { ServerCertificate } from './certs.ts'
import { descendantsOf, killAll } from './process-tree.ts'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

// Debian's own scripts insist on the account rabbitmq; these run under the current account.
const scripts = '/usr/lib/rabbitmq/bin'
const epmd = findProgram('epmd')
export const rabbitmqMissing =
  epmd === undefined || !existsSync(join(scripts, 'rabbitmq-server'))
    ? 'RabbitMQ (rabbitmq-server) is not installed'
    : undefined

export type RabbitmqServer = Running & {
  /** Its name in a cluster, `svc1234@localhost`. */
  readonly node: string
  /** The port of its epmd. */
  readonly names: number
  readonly amqpPort: number
  /** Of the management. */
  readonly url: string
  readonly port: number
  /** Of the management over TLS, if there is a certificate. */
  readonly tlsPort: number
  readonly address: string
  /** One request of the management as the administrator; what it answers, or undefined for none. */
  readonly api: (method: string, path: string, body?: unknown) => Promise<unknown>
  readonly publish: (queue: string, properties?: object) => Promise<void>
  /** A consumer (over STOMP) that acknowledges nothing and takes `prefetch` messages; the caller destroys it. */
  readonly consume: (queue: string, prefetch?: number) => Promise<Socket>
  /**
   * Sends a message to a queue with a STOMP client and returns the reply: `RECEIPT`, `ERROR` with its text, or why it
   * has no answer.
   */
  readonly send: (queue: string) => Promise<string>
  readonly ctl: (...args: readonly string[]) => string
  /** Sets the maintenance mode, which ends all connections of clients, or ends that mode. */
  readonly upgrade: (command: 'drain' | 'revive') => string
  /** Every process that was started for it and is still there. */
  readonly processes: () => readonly number[]
  /** Ends it with all that belongs to it, and removes its data. */
  readonly remove: () => Promise<void>
}

export type RabbitmqOptions = {
  /** The management also speaks TLS, on `tlsPort`. */
  readonly certificate?: ServerCertificate
  /** The port of the epmd of another node, which knows this one, too. Default: an epmd of its own. */
  readonly names?: number
  /** The name of a node that runs, whose cluster it joins. */
  readonly joins?: string
  /** Further lines of rabbitmq.conf. */
  readonly settings?: readonly string[]
  /** How often figures are collected, in milliseconds; 5,000 where nobody has set it. Default: 1,000. */
  readonly intervalMs?: number
}

export const administrator = { username: 'administrator', password: 'correct-horse-8' }

/** A real RabbitMQ with its management on free ports of 127.0.0.1. Takes 5 to 20 s. */
export async function startRabbitmq(options: RabbitmqOptions = {}): Promise<RabbitmqServer> {
  const { certificate, joins, settings = [], intervalMs = 1_000 } = options
  const folder = serverFolder('rabbitmq')
  const mine = (path: string): string => {
    if (asServer.uid !== undefined) chownSync(path, asServer.uid, asServer.gid)
    return path
  }
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return mine(join(folder, name))
  }
  const data = join(folder, 'data')
  mkdirSync(data)
  mine(data)
  const [amqp = 0, management = 0, stomp = 0, dist = 0, ownNames = 0, tlsPort = 0] = await Promise.all(
    Array.from({ length: 6 }, () => freePort()),
  )
  const names = options.names ?? ownNames
  const node = `svc${amqp}@localhost`
  // Nodes of one cluster have the same.
  file('.erlang.cookie', 'svc-test')
  const tls = certificate
    ? `management.ssl.ip = 127.0.0.1
management.ssl.port = ${tlsPort}
management.ssl.certfile = ${file('cert.pem', certificate.cert)}
management.ssl.keyfile = ${file('key.pem', certificate.key)}
`
    : ''
  const config = `
listeners.tcp.1 = 127.0.0.1:${amqp}
stomp.listeners.tcp.1 = 127.0.0.1:${stomp}
management.tcp.ip = 127.0.0.1
management.tcp.port = ${management}
default_user = ${administrator.username}
default_pass = ${administrator.password}
collect_statistics_interval = ${intervalMs}
disk_free_limit.absolute = 1MB
${joins === undefined ? '' : `cluster_formation.classic_config.nodes.1 = ${joins}\n`}${tls}${settings.join('\n')}
`
  const env: Readonly<Record<string, string>> = {
    HOME: folder,
    PATH: process.env.PATH ?? '',
    LANG: 'C.UTF-8',
    ERL_EPMD_PORT: String(names),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_NODENAME: node,
    RABBITMQ_DIST_PORT: String(dist),
    RABBITMQ_MNESIA_BASE: data,
    RABBITMQ_LOG_BASE: data,
    RABBITMQ_LOGS: '-',
    ERL_CRASH_DUMP_BYTES: '0',
    RABBITMQ_CONFIG_FILE: file('rabbitmq.conf', config),
    RABBITMQ_ENABLED_PLUGINS_FILE: file('enabled_plugins', '[rabbitmq_management,rabbitmq_stomp].\n'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +S 2:2',
  }
  const assignments = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const mapper = options.names === undefined ? await startMapper(names) : undefined
  const started = run(
    '/usr/bin/env',
    ['-i', ...assignments, join(scripts, 'rabbitmq-server')],
    /Server startup complete/,
  )
  const running = await started.catch((error: unknown) => {
    mapper?.kill()
    remove(folder)
    throw error
  })
  const url = `http://127.0.0.1:${management}`
  const packed = Buffer.from(`${administrator.username}:${administrator.password}`).toString('base64')
  const api = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${url}/api/${path}`, {
      method,
      headers: { Authorization: `Basic ${packed}`, 'Content-Type': 'application/json', Connection: 'close' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  }
  // The figures of a node come with its first statistics, one interval after its start, if it collects any.
  type Nodes = readonly { readonly mem_alarm?: boolean }[]
  const collects = !(((await api('GET', 'overview')) as { readonly disable_stats?: boolean }).disable_stats ?? false)
  const isReady = async (): Promise<boolean> =>
    !collects || ((await api('GET', 'nodes')) as Nodes).some((one) => one.mem_alarm !== undefined)
  await until(isReady, 60_000)
  const command = (program: string, ...args: readonly string[]): string => {
    const made = spawnSync('/usr/bin/env', ['-i', ...assignments, join(scripts, program), '-n', node, ...args], {
      ...asServer,
      cwd: '/',
      encoding: 'utf8',
      timeout: 60_000,
    })
    if (made.status !== 0) throw new Error(`${program} ${args[0]}: ${made.stderr}${made.stdout}`)
    return made.stdout.trim()
  }
  const processes = (): readonly number[] =>
    [running.pid, ...descendantsOf(running.pid), mapper?.pid ?? 0].filter(there)
  return {
    ...running,
    node,
    names,
    amqpPort: amqp,
    url,
    port: management,
    tlsPort,
    address: `127.0.0.1:${management}`,
    api,
    publish: async (queue, properties = {}) => {
      const message = { properties, routing_key: queue, payload: 'x', payload_encoding: 'string' }
      await api('POST', 'exchanges/%2f/amq.default/publish', message)
    },
    consume: async (queue, prefetch = 1) => {
      const socket = stompTo(stomp)
      socket.write(
        `SUBSCRIBE\nid:1\ndestination:/amq/queue/${queue}\nack:client-individual\nprefetch-count:${prefetch}\nreceipt:on\n\n\0`,
      )
      let text = ''
      while (!text.includes('receipt-id:on')) {
        const [chunk] = (await once(socket, 'data')) as [Buffer]
        text += chunk.toString('utf8')
        if (text.includes('ERROR')) throw new Error(text)
      }
      return socket
    },
    send: (queue) => sendTo(stomp, queue),
    ctl: (...args) => command('rabbitmqctl', ...args),
    upgrade: (name) => command('rabbitmq-upgrade', name),
    processes,
    remove: async () => {
      running.thaw()
      const all = processes()
      // Its own way to end takes many seconds, and its data are not needed any more. The script that
      // started the server waits for it, and so ends last.
      killAll(descendantsOf(running.pid))
      for (let tries = 0; tries < 100 && there(running.pid); tries += 1) await wait(20)
      await running.stop('SIGKILL')
      await mapper?.stop()
      for (let tries = 0; tries < 200 && all.some(there); tries += 1) await wait(20)
      remove(folder)
    },
  }
}

type Mapper = { readonly pid: number | undefined; readonly kill: () => void; readonly stop: () => Promise<void> }

/** An epmd. Started first and in the foreground: one that the server starts would outlive it. */
async function startMapper(port: number): Promise<Mapper> {
  const child = spawn(epmd ?? '', ['-port', String(port), '-address', '127.0.0.1'], {
    stdio: 'ignore',
    cwd: '/',
    ...asServer,
  })
  const ended = once(child, 'exit')
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  await listening(port)
  return {
    pid: child.pid,
    kill,
    stop: async () => {
      kill()
      await ended
      process.off('exit', kill)
    },
  }
}

/** Signs in over STOMP. */
function stompTo(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  const { username, password } = administrator
  socket.write(`CONNECT\naccept-version:1.2\nhost:/\nlogin:${username}\npasscode:${password}\n\n\0`)
  return socket
}

/** How long a client waits for an answer. One that gets none is what the test expects. */
const clientWaitsMs = 10_000

/** Sends a message to a queue that exists, and waits for its receipt, which RabbitMQ sends once the queue has the message. */
async function sendTo(port: number, queue: string): Promise<string> {
  const socket = stompTo(port)
  socket.write(`SEND\ndestination:/amq/queue/${queue}\npersistent:true\nreceipt:on\n\nx\0`)
  let text = ''
  const answer = new Promise<string>((resolve) => {
    socket.on('data', (chunk) => {
      text += String(chunk)
      if (text.includes('receipt-id:on')) resolve('RECEIPT')
      const error = /ERROR\n[\s\S]*?\n\n([^\0]*)/.exec(text)
      if (error) resolve(`ERROR ${error[1]?.trim()}`)
    })
    socket.on('error', (error) => resolve(`no connection: ${error.message}`))
    socket.on('close', () => resolve('the server ended the connection'))
    setTimeout(() => resolve('no answer'), clientWaitsMs).unref()
  })
  try {
    return await answer
  } finally {
    socket.destroy()
  }
}

/** A zombie has ended: whether somebody reaps it is not the server's affair. */
function there(pid: number): boolean {
  try {
    return pid > 0 && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const socket = connect(port, '127.0.0.1')
    const up = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (up) return
    await wait(25)
  }
  throw new Error('epmd does not listen')
}
