import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { startExim } from '../support/servers/exim.ts'
import { startMariadb } from '../support/servers/mariadb.ts'
import { startPgbouncer } from '../support/servers/pgbouncer.ts'
import { startPostgres } from '../support/servers/postgres.ts'
import { administrator, startRabbitmq } from '../support/servers/rabbitmq.ts'
import { startRedis } from '../support/servers/redis.ts'
import { startSentinelGroup } from '../support/servers/sentinel.ts'
import { findProgram, freePort, remove } from '../support/servers/server.ts'
import { admin, probe, type SlapdOptions, startSlapd } from '../support/servers/slapd.ts'
import { startSshd } from '../support/servers/sshd.ts'
import { startVsftpd, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { daemon } from '../support/suite/daemon.ts'
import { proving } from '../support/suite/runs.ts'
import { wallClock } from '../support/suite/until.ts'
import type { Group } from './corpus.ts'
import type { Expected, FirstRun, Row } from './row.ts'

/** A fault of never-met.yaml, whose head says what each part means. */
type Fault = {
  readonly id: string
  readonly fault: string
  readonly monitor?: Readonly<Record<string, unknown>>
  readonly config?: unknown
  readonly plant?: string
  readonly cure?: string
  readonly states: string
  readonly says?: string
  readonly visible: string
  readonly asks?: string
  readonly gets: string
  readonly answer?: string
  readonly then?: 'drip' | 'hang' | 'late'
  /** How the first run ended, if the row did not hold, and why. */
  readonly first?: string
}
type Faults = {
  readonly server: string
  readonly monitor: Readonly<Record<string, unknown>>
  readonly rows: readonly Fault[]
  readonly files?: Readonly<Record<string, string>>
  readonly run?: string
  readonly ready?: string
  readonly setup?: string
  readonly control?: string
  readonly asks?: string
  /** Rows also run outside `npm run corpus`. */
  readonly sample?: boolean
}
type Environment = Readonly<Record<string, string>>
/** A server, and what the lines of bash know of it. */
type Started = { env: Environment; readonly remove: () => unknown; answer?: Pick<Fault, 'answer' | 'then'> }
type Start = (config: never) => Promise<Started>

const file = new URL('never-met.yaml', import.meta.url)
const all: Readonly<Record<string, Faults>> = parse(readFileSync(file, 'utf8'))
const prelude = new URL('never-met.sh', import.meta.url).pathname
const password = 'correct horse battery'
/** Values of {env: NAME}. The key of the account is made with its server. */
const secrets: Record<string, string> = { PASSWORD: password, FTP_PASSWORD: vsftpdPassword, PROBE: probe.password }
/** For the plain clients, which ask nobody. */
const clients = { LC_ALL: 'C.UTF-8', PGPASSWORD: password, MYSQL_PWD: password }

async function bash(script: string, env: Environment): Promise<{ readonly code: unknown; readonly text: string }> {
  return await new Promise((resolve) => {
    execFile(
      'bash',
      ['-c', `. ${prelude}\n${script}`],
      {
        env: { ...process.env, ...clients, PATH: `/usr/sbin:${process.env.PATH}`, ...secrets, ...env },
        timeout: 40_000,
      },
      (error, stdout, stderr) => resolve({ code: error?.code ?? (error ? 'killed' : 0), text: stdout + stderr }),
    )
  })
}
async function must(script: string | undefined, env: Environment): Promise<void> {
  if (script === undefined) return
  const { code, text } = await bash(`set -e\n${script}`, env)
  if (code !== 0) throw new Error(`${script} ended with ${String(code)}: ${text}`)
}

const fill = (text: string, env: Environment): string =>
  text.replaceAll(/\$([A-Z][A-Z0-9_]*)/g, (whole, name: string) => env[name] ?? whole)
/** Settings with the values of the environment. One that a row sets to null is left out. */
function filled(value: unknown, env: Environment): unknown {
  if (typeof value === 'string') {
    const text = fill(value, env)
    return /^\$PORT\d?$/.test(value) ? Number(text) : text
  }
  if (Array.isArray(value)) return value.map((one) => filled(one, env))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => (one === null ? [] : [[name, filled(one, env)]])),
  )
}

function monitorOf(settings: Readonly<Record<string, unknown>>, env: Environment): Readonly<Record<string, unknown>> {
  secrets['KEY'] = env['KEY'] ?? ''
  return filled(settings, env) as Readonly<Record<string, unknown>>
}

/** A process that the data describe: its files, its command line, and when it is ready. */
async function startDescribed({ files = {}, run, ready }: Faults): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-never-met-'))
  const env: Record<string, string> = { DIR: folder, ID: String(process.pid) }
  for (const n of ['', '2', '3', '4', '5', '6']) env[`PORT${n}`] = String(await freePort())
  for (let n = 1; n <= 8; n += 1) env[`TEXT${n}`] = String(n).repeat(240)
  await must('chmod 755 $DIR', env)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), fill(text, env))
  }
  if (run === undefined) return { env, remove: () => remove(folder) }
  const listens = `exec 3<>/dev/tcp/127.0.0.1/$PORT`
  const { stop } = await daemon(['bash', '-c', `exec ${run}`], {
    ready: async () => (await bash(ready ?? listens, { ...env, GROUP: '' })).code === 0,
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
    env: { ...process.env, PATH: `/usr/sbin:${process.env.PATH}`, ...env },
    end: 'exit',
  })
  return {
    env,
    remove: async () => {
      await stop('SIGKILL')
      remove(folder)
    },
  }
}

/** A server that sends the bytes of the row. */
async function startBroken(): Promise<Started> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.once('data', () => {
      const { answer = '', then } = started.answer ?? {}
      const bytes = fill(answer, started.env).replaceAll('\n', '\r\n')
      if (then === 'late') return void setTimeout(() => socket.end(bytes), 3_000)
      if (then === undefined) return void socket.end(bytes)
      socket.write(bytes)
      if (then === 'drip') socket.once('close', clearTimer(setInterval(() => socket.write('x'), 1_000)))
    })
  })
  const port = await freePort()
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  const folder = mkdtempSync(join(tmpdir(), 'svc-never-met-'))
  const started: Started = {
    env: {
      DIR: folder,
      PORT: String(port),
      FILL: 'x'.repeat(100 * 1_024),
      LATER: new Date(Date.now() + 7_200_000).toUTCString(),
    },
    remove: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      remove(folder)
    },
  }
  return started
}
const clearTimer = (timer: NodeJS.Timeout) => (): void => clearInterval(timer)

/** Servers that the fixtures of the tests start, with the configuration of a row. */
const fixtures: Readonly<Record<string, Start>> = {
  postgres: async () => {
    const server = await startPostgres()
    const port = String(server.port)
    return { env: { DIR: server.folder, PORT: port, SERVER: port }, remove: server.remove }
  },
  pgbouncer: async () => {
    const server = await startPostgres()
    const users = { app: password, stats: password, admin: password }
    const at = `host=127.0.0.1 port=${server.port}`
    const databases = { app: `${at} dbname=app`, gone: `${at} dbname=gone` }
    const bouncer = await startPgbouncer({ users, databases, settings: { server_login_retry: 1 } })
    return {
      env: { DIR: server.folder, PORT: String(bouncer.port), SERVER: String(server.port) },
      remove: async () => {
        await bouncer.remove()
        await server.remove()
      },
    }
  },
  mariadb: async () => {
    const server = await startMariadb()
    return { env: { DIR: server.folder, PORT: String(server.port) }, remove: server.remove }
  },
  redis: async () => {
    const server = await startRedis()
    return { env: { DIR: server.folder, PORT: String(server.port) }, remove: server.remove }
  },
  sentinel: async () => {
    const group = await startSentinelGroup()
    const { primary, replica, sentinels } = group
    const ports = { PRIMARY: String(primary.port), REPLICA: String(replica.port) }
    return {
      env: { DIR: primary.folder, SENTINEL: new URL(sentinels[0].url).port, ...ports },
      remove: group.remove,
    }
  },
  rabbitmq: async () => {
    const server = await startRabbitmq()
    const folder = mkdtempSync(join(tmpdir(), 'svc-never-met-'))
    return {
      env: {
        DIR: folder,
        PORT: String(server.port),
        ADMINISTRATOR: `${administrator.username}:${administrator.password}`,
      },
      remove: async () => {
        await server.remove()
        remove(folder)
      },
    }
  },
  vsftpd: async (settings: Readonly<Record<string, string | number>>) => {
    const server = await startVsftpd({ settings })
    return { env: { DIR: dirname(server.root), ROOT: server.root, PORT: String(server.port) }, remove: server.remove }
  },
  sshd: async (settings: readonly string[]) => {
    const server = await startSshd(settings)
    const folder = dirname(server.files)
    writeFileSync(join(folder, 'key'), server.privateKey, { mode: 0o600 })
    return {
      env: {
        DIR: folder,
        PORT: String(server.port),
        ACCOUNT: server.user,
        HOSTKEY: server.hostKey,
        FILES: server.files,
        CONFIG: join(folder, 'sshd_config'),
        KEY: server.privateKey,
      },
      remove: server.remove,
    }
  },
  slapd: async (options: SlapdOptions) => {
    const server = await startSlapd(options)
    const folder = mkdtempSync(join(tmpdir(), 'svc-never-met-'))
    return {
      env: { DIR: folder, PORT: String(server.port), ADMIN: admin.user, ADMIN_PASSWORD: admin.password },
      remove: async () => {
        await server.remove()
        remove(folder)
      },
    }
  },
  exim: async (lines: readonly string[]) => {
    const server = await startExim(lines)
    return { env: { DIR: dirname(server.config), PORT: String(server.port) }, remove: server.remove }
  },
  node: startBroken,
}

const stateNames = { ok: 'healthy', warning: 'warning', unchecked: 'not checked', failed: 'unhealthy' } as const

/** `-`: the kind has no check in that mode. */
function expectedOf(state: string | undefined, says: RegExp): Expected | undefined {
  if (state === '-') return undefined
  const name = stateNames[state as keyof typeof stateNames]
  return name === 'healthy' ? { state: name } : { state: name, says }
}

/** The groups of never-met.yaml with these keys, and each healthy before its first fault and after its last one. */
export function neverMet(...keys: readonly string[]): readonly Group<Started>[] {
  const isWhole = proving || process.env.SVC_CORPUS_OUT !== undefined
  return keys.flatMap((key) => {
    const faults = all[key]
    if (faults === undefined) throw new Error(`never-met.yaml has no ${key}`)
    return isWhole || faults.sample === true ? [groupOf(key, faults)] : []
  })
}
export const keysOfNeverMet = Object.keys(all)

function groupOf(key: string, faults: Faults): Group<Started> {
  const { server: name, monitor: usual, asks: usually, setup, control, run } = faults
  const start = async (config: unknown): Promise<Started> => {
    const fixture = fixtures[key] as ((config: unknown) => Promise<Started>) | undefined
    const started = await (fixture?.(config) ?? startDescribed(faults))
    started.env = { ...started.env, GROUP: key }
    return started
  }
  const program = run?.split(' ')[0]
  const rowOf = (fault: Fault): Row<Started> => {
    const { plant, cure, config, asks = usually, states, visible, monitor, says = '', first, ...answer } = fault
    const [basic, standard, advanced] = states.split(' ')
    const expected = expectedOf(advanced, new RegExp(says, 'm'))
    if (expected === undefined) throw new Error(`${fault.id} says nothing about Advanced`)
    const settings = { ...usual, ...monitor }
    let here: Started | undefined
    const envOf = ({ env }: Started): Environment => {
      const own = here?.env ?? env
      return { ...own, URL: typeof settings.url === 'string' ? fill(settings.url, own) : '' }
    }
    const [firstRun = 'held'] = first?.split(', ') ?? []
    return {
      fault: `${fault.fault}, never met`,
      monitor: (server) => monitorOf(settings, envOf(server)),
      env: secrets,
      ...(settings.latency !== undefined && { now: wallClock }),
      plant: async (server) => {
        if (config !== undefined) here = await start(config)
        const planted = here ?? server
        planted.answer = answer
        try {
          await must(plant, envOf(server))
        } catch (error) {
          await bash('ended', planted.env)
          throw error
        }
        return async () => {
          await bash('ended', planted.env)
          await must(cure, envOf(server))
          await here?.remove()
          here = undefined
        }
      },
      expected,
      shallower: { Basic: expectedOf(basic, /(?:)/), Standard: expectedOf(standard, /(?:)/) },
      client: {
        asks: async (server) => (await bash(asks ?? '', envOf(server))).text.trim(),
        gets: new RegExp(fault.gets, 'm'),
      },
      ...(visible.startsWith('no, ') ? { invisible: visible.slice(4) } : {}),
      blind: firstRun as FirstRun,
    }
  }
  const healthy = (when: string): Row<Started> => ({
    fault: `healthy ${when}`,
    monitor: ({ env }) => monitorOf(usual, env),
    env: secrets,
    plant: async (server) => {
      if (key === 'node') server.answer = { answer: control ?? '' }
      else await must(control, server.env)
      return async () => void (await bash('ended', server.env))
    },
    expected: { state: 'healthy' },
    shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
  })
  return {
    server: `${name}, faults never met`,
    missing: program === undefined || findProgram(program) !== undefined ? undefined : `${program} is not installed`,
    start: async () => {
      const started = await start(undefined)
      await must(setup, started.env)
      return started
    },
    context: ({ env }) => ({ services: { exec: { allow: [env['DIR'] ?? ''] } } }),
    rows: [healthy('before its faults'), ...faults.rows.map(rowOf), healthy('after its faults')],
  }
}
