import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import {
  createServer,
  type Server as HttpServer,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../../src/core/config/index.ts'
import type { Combination, File, PlaceFlag, PlaceVariable, Server } from '../../../tools/gates/dimensions.ts'
import { endsAtOnce, outcomeOf, placeOf } from '../../../tools/gates/rules.ts'
import { testCore, testServer } from '../engine/core.ts'
import { replay } from '../simulated/replay.ts'
import { answersOf01 } from '../simulated/svc-0.1-answers.ts'
import type { GateCommand } from './commands.ts'

export type GateFixture = {
  /**
   * The command line of a combination. Whatever a flag, a variable or a profile names in vain is healthy, or unhealthy
   * if the combination exits with 0: a wrong choice of the place shows in the exit code.
   */
  readonly commandFor: (combination: Combination) => GateCommand
  readonly close: () => Promise<void>
}

type Ends = (() => unknown)[]

/** All servers and files of the table of gates, on this machine. */
export async function gateFixture(): Promise<GateFixture> {
  const ends: Ends = []
  const folder = mkdtempSync(join(tmpdir(), 'svc-gates-'))
  ends.push(() => rmSync(folder, { recursive: true, force: true }))
  const { port } = await listening(
    createTcpServer((socket) => socket.on('error', () => {}).end()),
    ends,
  )
  const files = yamlFiles(port)
  const urls = await serverUrls(folder, files, ends)
  const paths = Object.fromEntries(
    Object.entries(files).map(([name, text], at) => {
      const path = join(folder, `file-${at}.yaml`)
      if (text !== undefined) writeFileSync(path, text, { mode: 0o600 })
      return [name, path]
    }),
  ) as Record<File, string>
  const homes = new Map<string, string>()
  const homeOf = (file: File, settings: object): string => {
    const key = JSON.stringify([file, settings])
    const existing = homes.get(key)
    if (existing !== undefined) return existing
    const home = join(folder, `home-${homes.size}`)
    mkdirSync(home, { mode: 0o700 })
    const text = files[file]
    if (text !== undefined) writeFileSync(join(home, 'svc.yaml'), text, { mode: 0o600 })
    writeFileSync(join(home, 'config.json'), JSON.stringify(settings), { mode: 0o600 })
    homes.set(key, home)
    return home
  }

  const commandFor = (combination: Combination): GateCommand => {
    const { choice, requirement, type, format, waits, server, file } = combination
    const place = placeOf(choice)
    const source = place.at === 'nowhere' ? undefined : place.by
    const { exit } = outcomeOf(combination)
    const other = exit === 0 ? 'unhealthy' : 'healthy'
    const goalUrl = urls[server ?? `svc, ${other}`]
    const otherUrl = urls[`svc, ${other}`]
    const fileFor = (name: string): File => (source === name && file !== undefined ? file : other)
    const profileFor = (name: string): string => (source === name ? 'goal' : 'other')
    const store = join(folder, 'store.db')
    const values: Record<PlaceFlag | PlaceVariable, string> = {
      '--config': paths[fileFor('--config')],
      '--store': store,
      '--local': '',
      '--server': source === '--server' ? goalUrl : otherUrl,
      '--profile': profileFor('--profile'),
      SVC_CONFIG: paths[fileFor('SVC_CONFIG')],
      SVC_STORE: store,
      SVC_SERVER: source === 'SVC_SERVER' ? goalUrl : otherUrl,
      SVC_PROFILE: profileFor('SVC_PROFILE'),
    }
    const home = homeOf(fileFor('the folder of the account'), {
      ...(choice.hasCurrentProfile ? { current: profileFor('current profile') } : {}),
      profiles: { goal: { server: goalUrl }, other: { server: otherUrl } },
    })
    const silent = server === 'a server that accepts and sends nothing' && place.at === 'server'
    return {
      argv: [
        ...['-m', 'Basic', '-o', format],
        ...(type === 'no -t' ? [] : type.split(' ')),
        ...(requirement === '--require-config' ? [requirement] : []),
        ...choice.flags.flatMap((flag) => (flag === '--local' ? [flag] : [flag, values[flag]])),
        // What no waiting changes must not be waited for.
        ...(waits ? ['--wait', endsAtOnce.has(exit) ? '10m' : '1ms'] : []),
        ...(silent ? ['--timeout', '20ms'] : []),
      ],
      env: {
        SVC_HOME: home,
        ...(requirement === 'SVC_REQUIRE_CONFIG=1' ? { SVC_REQUIRE_CONFIG: '1' } : {}),
        ...Object.fromEntries(choice.variables.map((name) => [name, values[name]])),
        ...(choice.empty === undefined ? {} : { [choice.empty]: '' }),
      },
    }
  }
  return {
    commandFor,
    close: async () => {
      for (const end of ends.toReversed()) await end()
    },
  }
}

/** svc.yaml as text, or undefined where there is none. `port` accepts connections. */
function yamlFiles(port: number): Record<File, string | undefined> {
  const app = (to: number): string =>
    `types:\n  App: {host: false, monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: ${to}}]}\n`
  return {
    healthy: app(port),
    unhealthy: app(1),
    'with a mistake outside of the server types': `${app(port)}  Sqll: []\n`,
    'with only a host check of Standard, checked in Basic': 'types:\n  App: {host: {disk: 1%}}\n',
    'with a host block that switches on nothing':
      'types:\n  App: {host: {skipDisks: [/mnt/scratch], disks: [], disk: off, swap: {}}}\n  Ftp: {host: false}\n',
    'that configures nothing': 'types: {}\n',
    'that does not exist': undefined,
  }
}

async function serverUrls(
  folder: string,
  files: Record<File, string | undefined>,
  ends: Ends,
): Promise<Record<Server, string>> {
  const svc = (yaml: string | undefined, requireConfig = false): Promise<string> =>
    serving(folder, yaml, requireConfig, ends)
  const serviceStack = async (options: Partial<Parameters<typeof replay>[0]>): Promise<string> => {
    const server = await replay({ generation: '5.8', ...options })
    ends.push(server.close)
    return server.url
  }
  const healthy = await svc(files.healthy)
  const bare = await svc(undefined)
  const isHealth = (path: string): boolean => path.startsWith('/healthcheck')
  const silent = await listening(
    createTcpServer((socket) => {
      socket.on('error', () => {})
      ends.push(() => socket.destroy())
    }),
    ends,
  )
  return {
    'svc, healthy': healthy,
    'svc, unhealthy': await svc(files.unhealthy),
    'svc without a configuration': bare,
    'svc without a configuration, with SVC_REQUIRE_CONFIG=1': await svc(undefined, true),
    'older svc without a configuration, which sends runs': await inFrontOf(
      bare,
      (path, { status, headers }) => (isHealth(path) ? { status, headers } : { status: 405, headers: {} }),
      ends,
    ),
    'svc 0.1, healthy': await answering01(answersOf01.configured, ends),
    'svc 0.1 without a configuration': await answering01(answersOf01.itself, ends),
    'ServiceStack, healthy': await serviceStack({}),
    'ServiceStack, unhealthy': await serviceStack({ health: 'failing' }),
    'ServiceStack without a health operation': await serviceStack({ health: 'absent' }),
    'a login page': await serviceStack({ refuses: 'with a login page' }),
    'a cache with an old answer': await inFrontOf(
      healthy,
      (path, { status, headers }) => ({ status, headers: isHealth(path) ? { ...headers, age: '3600' } : headers }),
      ends,
    ),
    'Success with the HTTP status 503': await inFrontOf(
      healthy,
      (path, { status, headers }) => ({ status: isHealth(path) ? 503 : status, headers }),
      ends,
    ),
    'a port on which nothing listens': 'http://127.0.0.1:1',
    'a server that accepts and sends nothing': silent.url,
  }
}

async function listening(server: TcpServer | HttpServer, ends: Ends): Promise<{ port: number; url: string }> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  ends.push(() => server.close())
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}` }
}

/** A server of this version. Its callers do not share runs, because a shared run begins once a second. */
async function serving(folder: string, yaml: string | undefined, requireConfig: boolean, ends: Ends): Promise<string> {
  const home = mkdtempSync(join(folder, 'serve-'))
  if (yaml !== undefined) writeFileSync(join(home, 'svc.yaml'), yaml, { mode: 0o600 })
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: home }, platform: process.platform, home }),
    shared: false,
    details: 'anyone',
    requireConfig,
  })
  const server = await testServer({ service, runtime })
  ends.push(async () => {
    await server.stop()
    await runtime.close()
  })
  return server.url
}

type Head = { readonly status: number; readonly headers: OutgoingHttpHeaders }

/** A simulated proxy, which changes the status and the headers of answers. */
async function inFrontOf(url: string, change: (path: string, head: Head) => Head, ends: Ends): Promise<string> {
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? '/'
    const onward = request(new URL(path, url), { headers: incoming.headers, agent: false }, (answer) => {
      const { status, headers } = change(path, { status: answer.statusCode ?? 0, headers: answer.headers })
      answer.pipe(response.writeHead(status, headers))
    })
    onward.on('error', () => response.destroy()).end()
  })
  return (await listening(server, ends)).url
}

/** A replayed svc 0.1, whose answer for App is this one. */
async function answering01(app: string, ends: Ends): Promise<string> {
  const send = (response: ServerResponse, status: number, body: string): void => {
    const [, endedAt] = /EndDateTime":"\\\/Date\((\d+)/.exec(body) ?? []
    const date = endedAt === undefined ? new Date() : new Date(Number(endedAt))
    response.writeHead(status, {
      date: date.toUTCString(),
      age: '0',
      'content-type': 'application/json; charset=utf-8',
    })
    response.end(body)
  }
  const server = createServer(({ url = '' }, response) => {
    if (!url.startsWith('/healthcheck')) send(response, 404, answersOf01.unknownPath)
    else if (/ServerType=App\b/.test(url)) send(response, 200, app)
    else send(response, 503, answersOf01.lacking)
  })
  return (await listening(server, ends)).url
}
