import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Data, openData } from '../../src/core/store/index.ts'
import { fileOfAge } from '../support/faults/folder-faults.ts'
import { admin, startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { remove } from '../support/servers/server.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const done = async (home: Home, args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await home.svc(args)
  if (code !== 0) throw new Error(`svc ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

type Server = {
  readonly home: Home
  readonly serve: Serving
  /** A server that has been stopped. */
  readonly stopped: Serving
}
const minuteMs = 60_000
const env: Record<string, string> = { WRONG: 'another password', PASSWORD: admin.password }

const peer =
  (more: object = {}, name: 'serve' | 'stopped' = 'serve') =>
  (server: Server) => ({ kind: 'svc', url: server[name].url, token: { env: 'KEY' }, ...more })
const askHealth =
  (name: 'serve' | 'stopped' = 'serve', type = 'App') =>
  (server: Server): readonly PeerProgram[] => {
    const { url, port } = server[name]
    const path = `/healthcheck?ServerType=${type}&ExecutionMode=Standard`
    return [
      { program: 'check_http', args: ['-I', '127.0.0.1', '-p', String(port), '-u', path, '-t', '5'] },
      { program: 'blackbox_exporter', module: { prober: 'http' }, target: `${url}${path}` },
    ]
  }
const steps =
  (password: string, name: 'serve' | 'stopped' = 'serve') =>
  (server: Server) => ({
    kind: 'http-steps',
    url: server[name].url,
    username: admin.userName,
    password: { env: password },
    steps: [
      {
        name: 'sign in',
        method: 'POST',
        path: '/auth/credentials',
        signIn: true,
        form: { UserName: `\${username}`, Password: `\${password}` },
        json: { '$.UserName': `\${username}` },
      },
      { name: 'read', path: '/auth' },
      { name: 'sign out', method: 'POST', path: '/auth/logout', signIn: true },
    ],
  })

const rows: readonly Row<Server>[] = [
  { fault: 'healthy, with a key', monitor: peer(), expected: { state: 'healthy' }, peers: askHealth() },
  {
    fault: 'a monitor of the server fails: the backup is missing',
    monitor: peer({ type: 'Sql' }),
    expected: fails('health', 'any', /failed there: file-age nightly/),
    peers: askHealth('serve', 'Sql'),
  },
  {
    fault: 'a monitor of the server fails, asked by the kind http',
    blind: 'wrong expectation',
    monitor: ({ serve }) => ({
      kind: 'http',
      url: `${serve.url}/healthcheck?ServerType=Sql&ExecutionMode=Standard&format=json`,
      health: true,
    }),
    // The status is that of a server that is not healthy; its document says why.
    expected: fails('health', 'any', /reports Failure/),
  },
  {
    fault: 'healthy, asked by the kind http',
    monitor: ({ serve }) => ({
      kind: 'http',
      url: `${serve.url}/healthcheck?ServerType=App&ExecutionMode=Standard&format=json`,
      health: true,
    }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'a monitor of the server warns: the backup is 30 minutes old',
    monitor: peer({ type: 'Batch' }),
    expected: warns('health', /warning.*file-age nightly age/),
    peers: askHealth('serve', 'Batch'),
  },
  {
    fault: 'the type is not configured on the server',
    monitor: peer({ type: 'Mongo' }),
    expected: fails('health', 'any', /Mongo.* not configured/),
  },
  {
    fault: 'svc serve was stopped',
    monitor: peer({}, 'stopped'),
    expected: fails('connect', 'refused', /refused/),
    peers: askHealth('stopped'),
  },
  { fault: 'healthy: signs in and out', monitor: steps('PASSWORD'), expected: { state: 'healthy' } },
  {
    fault: 'the password was changed',
    monitor: steps('WRONG'),
    expected: fails('step', 'auth', /401: the sign-in was refused/),
  },
  {
    fault: 'svc serve was stopped: its steps',
    monitor: steps('PASSWORD', 'stopped'),
    expected: fails('connect', 'refused', /refused/),
  },
]

corpus<Server>({
  server: 'svc serve',
  env,
  missing: undefined,
  start: async () => {
    const home = svcHome()
    // A type for each state, because a server shares the results of a type for a while.
    const type = (path: string) => ({ host: false, monitors: [{ kind: 'file-age', name: 'nightly', path }] })
    const types = {
      App: type(fileOfAge(home.folder, 'fresh.dump', 0)),
      Sql: type(join(home.folder, 'missing.dump')),
      Batch: type(fileOfAge(home.folder, 'old.dump', 30 * minuteMs)),
    }
    const yaml = JSON.stringify({ types })
    const serve = await startServe(home, yaml)
    const store = ['--store', join(home.folder, 'server', 'svc.db')]
    env.KEY = await done(home, ['keys', 'create', 'monitor', '--user', admin.userName, ...store])
    const other = svcHome()
    const stopped = await startServe(other, yaml)
    await stopped.stop()
    other.remove()
    return { home, serve, stopped }
  },
  stop: async ({ home, serve }) => {
    await serve.stop()
    home.remove()
  },
  rows,
})

type Agents = { readonly home: Home; readonly data: Data }
const heartbeat =
  (more: object = {}) =>
  () => ({ kind: 'heartbeat', agents: ['nightly'], ...more })
/** Reports as an agent does. Its last report stays, so each row begins with a report of its own. */
const report =
  (...args: readonly string[]) =>
  async ({ home }: Agents) => {
    const { code, stderr } = await home.svc(['heartbeat', ...args])
    if (code === null || code > 1) throw new Error(stderr)
    return undefined
  }

/** A report as the store takes it: through the command, its time would be that of this machine. */
const beat = {
  who: 'tester',
  status: 'Ok',
  message: undefined,
  version: undefined,
  intervalMs: undefined,
  backlog: undefined,
  diskFreePercent: undefined,
  skewMs: undefined,
} as const

corpus<Agents>({
  server: 'svc heartbeat',
  env,
  missing: undefined,
  start: async () => {
    const home = svcHome()
    await done(home, ['users', 'add', 'root', '--no-password'])
    const path = home.files().find((file) => file.endsWith('svc.db')) ?? ''
    return { home, data: await openData({ store: join(home.folder, path), create: false }) }
  },
  stop: async ({ home, data }) => {
    await data.close()
    home.remove()
  },
  context: ({ data }) => ({ services: { heartbeats: () => data.heartbeats.list() } }),
  rows: [
    {
      fault: 'no agent has ever reported',
      monitor: heartbeat(),
      expected: fails('newest', 'data', /no heartbeat from nightly/),
    },
    {
      fault: 'healthy',
      monitor: heartbeat(),
      plant: report('nightly', '--version', '2.1', '--backlog', '0', '--disk', '/proc/..'),
      expected: { state: 'healthy' },
    },
    {
      fault: 'healthy: a job has ended',
      monitor: heartbeat({ runtime: '1h' }),
      plant: report('nightly', '--', 'true'),
      expected: { state: 'healthy' },
    },
    {
      fault: 'two runs of a job at once',
      monitor: heartbeat({ agents: ['doubled'] }),
      plant: async ({ data }) => {
        const now = Date.now()
        for (const [id, at] of [
          [1, now - 60_000],
          [2, now],
        ] as const)
          await data.heartbeats.report({ ...beat, name: 'doubled', at, run: { id } })
        return undefined
      },
      expected: warns('overlap', /doubled.*began .*1(?:\.\d)? min.* has not ended/),
      before: 'ok',
    },
    {
      fault: 'healthy: the earlier of two runs has ended',
      monitor: heartbeat({ agents: ['doubled'] }),
      plant: async ({ data }) => {
        await data.heartbeats.report({ ...beat, name: 'doubled', at: Date.now(), run: { id: 1, durationMs: 60_000 } })
        return undefined
      },
      expected: { state: 'healthy' },
    },
    {
      fault: 'the last heartbeat is from the future, and the agent has ended since',
      monitor: heartbeat({ agents: ['ahead'] }),
      plant: async ({ data }) => {
        await data.heartbeats.report({ ...beat, name: 'ahead', at: Date.now() + 86_400_000 })
        return undefined
      },
      expected: fails('newest', 'data', /ahead.*24 h in the future/),
      before: 'ok',
    },
    {
      fault: 'healthy: the agent has reported again since the clock was corrected',
      monitor: heartbeat({ agents: ['ahead'] }),
      plant: async ({ data }) => {
        await data.heartbeats.report({ ...beat, name: 'ahead', at: Date.now() })
        return undefined
      },
      expected: { state: 'healthy' },
    },
    {
      fault: 'the agent reports that it failed',
      monitor: heartbeat(),
      plant: report('nightly', '--status', 'fail', '--message', 'no tape in the drive'),
      expected: fails('status', 'any', /nightly reports Fail: "no tape in the drive"/),
    },
    {
      fault: 'the job of the agent ends with an exit code',
      monitor: heartbeat(),
      plant: report('nightly', '--', 'sh', '-c', 'echo disk full >&2; exit 1'),
      expected: fails('status', 'any', /nightly reports Fail: "exit code 1/),
    },
    {
      fault: 'the agent is silent',
      monitor: heartbeat({ interval: '1s' }),
      plant: async (agents) => {
        await report('nightly')(agents)
        await wait(6_000)
        return undefined
      },
      expected: fails('newest', 'threshold', /from nightly, came .* ago/),
    },
    {
      fault: 'one of two agents has never reported',
      monitor: heartbeat({ agents: ['nightly', 'weekly'] }),
      plant: report('nightly'),
      expected: fails('reporting', 'any', /1 of 2 agents reports; missing: weekly/),
    },
    {
      fault: 'the agent changes between ok and failed',
      monitor: heartbeat({ flapping: { warn: 1, limit: 2 } }),
      plant: async (agents) => {
        for (const status of ['fail', 'ok', 'fail', 'ok']) await report('nightly', '--status', status)(agents)
        return undefined
      },
      expected: fails('flapping', 'threshold', /nightly: changes between Ok and/),
    },
    {
      fault: 'too much work waits at the agent',
      monitor: heartbeat({ backlog: { warn: 10, limit: 100 } }),
      plant: report('nightly', '--backlog', '120'),
      expected: fails('backlog', 'threshold', /nightly: .*120/),
    },
  ],
})

type Deployed = { readonly folder: string }
const deployment =
  (more: object = {}) =>
  ({ folder }: Deployed) => ({
    kind: 'deployment',
    marker: join(folder, 'deploying'),
    versionFile: join(folder, 'version.json'),
    versionKey: 'build.version',
    expected: '2.1.0',
    ...more,
  })
const withVersion =
  (version: string | undefined, markerAgeMs?: number) =>
  ({ folder }: Deployed) => {
    if (version !== undefined) writeFileSync(join(folder, 'version.json'), JSON.stringify({ build: { version } }))
    if (markerAgeMs !== undefined) fileOfAge(folder, 'deploying', markerAgeMs)
    return Promise.resolve(() => {
      for (const file of ['version.json', 'deploying']) rmSync(join(folder, file), { force: true })
    })
  }

corpus<Deployed>({
  server: 'a deployment in files',
  env,
  missing: undefined,
  start: () => Promise.resolve({ folder: mkdtempSync(join(tmpdir(), 'svc-deployed-')) }),
  stop: ({ folder }) => remove(folder),
  rows: [
    { fault: 'healthy', monitor: deployment(), plant: withVersion('2.1.0'), expected: { state: 'healthy' } },
    {
      fault: 'the previous version is deployed',
      monitor: deployment(),
      plant: withVersion('2.0.9'),
      expected: fails('version', 'data', /reports 2\.0\.9, expected 2\.1\.0/),
    },
    {
      fault: 'a deployment is in progress',
      monitor: deployment(),
      plant: withVersion('2.1.0', 5 * minuteMs),
      expected: fails('deployment', 'data', /in progress for 5(?:\.\d)? min/),
    },
    {
      fault: 'a deployment has not ended',
      monitor: deployment(),
      plant: withVersion('2.1.0', 120 * minuteMs),
      expected: fails('deployment', 'threshold', /began 2 h ago and has not ended.*remove .*deploying/),
    },
    {
      fault: 'the marker of a deployment is from the future',
      monitor: deployment(),
      plant: withVersion('2.1.0', -120 * minuteMs),
      expected: fails('deployment', 'data', /deploying is dated 2 h in the future/, { never: /in progress for/ }),
      before: 'in progress for 0 ms',
    },
    ...(['utf8', 'utf16le'] as const).map(
      (encoding): Row<Deployed> => ({
        fault: `healthy: a version file in ${encoding} with a byte order mark`,
        monitor: deployment(),
        plant: ({ folder }) => {
          const file = join(folder, 'version.json')
          writeFileSync(file, Buffer.from('\uFEFF{"build": {"version": "2.1.0"}}', encoding))
          return Promise.resolve(() => rmSync(file, { force: true }))
        },
        expected: { state: 'healthy' },
        before: 'is not JSON',
      }),
    ),
    ...(['utf8', 'utf16le'] as const).map(
      (encoding): Row<Deployed> => ({
        fault: `healthy: a version in a text of ${encoding} with a byte order mark`,
        monitor: deployment({ versionKey: undefined }),
        plant: ({ folder }) => {
          const file = join(folder, 'version.json')
          writeFileSync(file, Buffer.from('\uFEFF2.1.0\r\n', encoding))
          return Promise.resolve(() => rmSync(file, { force: true }))
        },
        expected: { state: 'healthy' },
      }),
    ),
    {
      fault: 'the version is missing',
      monitor: deployment(),
      plant: withVersion(undefined),
      expected: fails('version', 'data', /version\.json does not exist/),
    },
  ],
})
