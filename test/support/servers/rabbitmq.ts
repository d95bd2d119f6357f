import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../suite/until.ts'
import type { ServerCertificate } from './certs.ts'
import {
  asServer,
  descendantsOf,
  findProgram,
  freePort,
  killAll,
  type Running,
  remove,
  run,
  serverFolder,
} from './server.ts'

// Debian's own scripts insist on the account rabbitmq; these run under the current account.
const scripts = '/usr/lib/rabbitmq/bin'
const epmd = findProgram('epmd')
export const rabbitmqMissing =
  epmd === undefined || !existsSync(join(scripts, 'rabbitmq-server'))
    ? 'RabbitMQ (rabbitmq-server) is not installed'
    : undefined

export type RabbitmqServer = Running & {
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
  readonly ctl: (...args: readonly string[]) => string
  /** Every process that was started for it and is still there. */
  readonly processes: () => readonly number[]
  /** Ends it with all that belongs to it, and removes its data. */
  readonly remove: () => Promise<void>
}

export const administrator = { username: 'administrator', password: 'correct-horse-8' }

/**
 * A real RabbitMQ with its management on free ports of 127.0.0.1, with an epmd of its own. Takes 5 to 20 s. With a
 * certificate, the management also speaks TLS, on `tlsPort`.
 */
export async function startRabbitmq(certificate?: ServerCertificate): Promise<RabbitmqServer> {
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
  const [amqp, management, stomp, dist, names, tlsPort] = await Promise.all(Array.from({ length: 6 }, () => freePort()))
  const node = `svc${amqp}@localhost`
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
collect_statistics_interval = 1000
disk_free_limit.absolute = 1MB
${tls}`
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
  // Started first and in the foreground: one that the server starts would outlive it.
  const mapper = spawn(epmd ?? '', ['-port', String(names), '-address', '127.0.0.1'], {
    stdio: 'ignore',
    cwd: '/',
    ...asServer,
  })
  const mapperEnded = once(mapper, 'exit')
  const killMapper = (): void => void mapper.kill('SIGKILL')
  process.once('exit', killMapper)
  await listening(names ?? 0)
  const started = run(
    '/usr/bin/env',
    ['-i', ...assignments, join(scripts, 'rabbitmq-server')],
    /Server startup complete/,
  )
  const running = await started.catch((error: unknown) => {
    killMapper()
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
  // The figures of a node come with its first statistics, a second after its start.
  await until(async () =>
    ((await api('GET', 'nodes')) as readonly { readonly mem_alarm?: boolean }[]).some(
      (one) => one.mem_alarm !== undefined,
    ),
  )
  const processes = (): readonly number[] => [running.pid, ...descendantsOf(running.pid), mapper.pid ?? 0].filter(there)
  return {
    ...running,
    url,
    port: management ?? 0,
    tlsPort: tlsPort ?? 0,
    address: `127.0.0.1:${management}`,
    api,
    publish: async (queue, properties = {}) => {
      const message = { properties, routing_key: queue, payload: 'x', payload_encoding: 'string' }
      await api('POST', 'exchanges/%2f/amq.default/publish', message)
    },
    consume: async (queue, prefetch = 1) => {
      const socket = connect(stomp ?? 0, '127.0.0.1')
      socket.on('error', () => {})
      const { username, password } = administrator
      socket.write(`CONNECT\naccept-version:1.2\nhost:/\nlogin:${username}\npasscode:${password}\n\n\0`)
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
    ctl: (...args) => {
      const made = spawnSync(
        '/usr/bin/env',
        ['-i', ...assignments, join(scripts, 'rabbitmqctl'), '-n', node, ...args],
        {
          ...asServer,
          cwd: '/',
          encoding: 'utf8',
          timeout: 30_000,
        },
      )
      if (made.status !== 0) throw new Error(`rabbitmqctl ${args[0]}: ${made.stderr}${made.stdout}`)
      return made.stdout.trim()
    },
    processes,
    remove: async () => {
      running.thaw()
      const all = processes()
      // Its own way to end takes many seconds, and its data are not needed any more. The script that
      // started the server waits for it, and so ends last.
      killAll(descendantsOf(running.pid))
      for (let tries = 0; tries < 100 && there(running.pid); tries += 1) await wait(20)
      await running.stop('SIGKILL')
      killMapper()
      await mapperEnded
      process.off('exit', killMapper)
      for (let tries = 0; tries < 200 && all.some(there); tries += 1) await wait(20)
      remove(folder)
    },
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
