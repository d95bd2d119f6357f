import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { farMs, until } from '../suite/until.ts'
import { compiledCode } from './compiled-code.ts'
import { unwatched } from './unwatched.ts'

const built = new URL('../../../bin/run.js', import.meta.url).pathname

export const admin = { userName: 'Ann', password: 'violet-harbour-42' } as const

/** A real `svc serve` of the built program on a store that others may use too. */
export type ServeNode = {
  readonly url: string
  readonly port: number
  /** Of what was spawned: svc itself, unless a command starts it. */
  readonly pid: number
  readonly log: () => string
  /** Its svc.yaml. */
  readonly config: string
  readonly signal: (name: NodeJS.Signals) => void
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** SIGTERM; gives how it ended. */
  readonly stop: () => Promise<number | NodeJS.Signals>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export type NodeOptions = {
  /** A file or a URL. */
  readonly store: string
  readonly yaml?: string
  readonly env?: Readonly<Record<string, string>>
  readonly flags?: readonly string[]
  /** The program and the arguments that start svc. */
  readonly command?: readonly string[]
  /** Another program than the one that is built here. */
  readonly program?: string
  /** Without users, and so without the Admin. */
  readonly only?: 'health'
  /** Where to listen. Absent: on a free port. */
  readonly port?: number
}

/** Milliseconds until one that does not end after SIGTERM is killed. */
const endMs = 15_000

/** The environment of a command or of a server whose home is this folder. */
export const envOf = (folder: string): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: folder,
  SVC_HOME: folder,
  NO_COLOR: '1',
  ...compiledCode,
})

/** Starts it, with the Admin Ann where it has users, and resolves once it listens. Throws its log when it ends instead. */
export async function startNode({
  store,
  yaml = '{}\n',
  env,
  flags = [],
  command = [],
  program = built,
  only,
  port: listenOn = 0,
}: NodeOptions): Promise<ServeNode> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-node-'))
  mkdirSync(join(folder, 'files'), { mode: 0o700 })
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, 'files', name), content, { mode: 0o600 })
    return join(folder, 'files', name)
  }
  const portFile = file('port', '')
  const config = file('svc.yaml', unwatched(yaml))
  const args = [
    ...['serve', '--port', String(listenOn), '--port-file', portFile, '--config', config],
    ...(only === undefined
      ? ['--bootstrap-admin', admin.userName, '--bootstrap-password-file', file('password', admin.password)]
      : ['--only', only]),
    ...flags,
  ]
  const [executable = '', ...rest] = [...command, process.execPath, program, ...args]
  const child = spawn(executable, rest, {
    env: { ...envOf(folder), SVC_STORE: store, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += String(chunk)
  })
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals)
  const stop = async (): Promise<number | NodeJS.Signals> => {
    const timer = setTimeout(kill, endMs)
    child.kill('SIGTERM')
    const how = await ended
    clearTimeout(timer)
    process.off('exit', kill)
    rmSync(folder, { recursive: true, force: true })
    return how
  }
  try {
    await until(() => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`svc serve ended with ${child.exitCode ?? child.signalCode}: ${log}`)
      return readFileSync(portFile, 'utf8') !== ''
    })
  } catch (error) {
    await stop()
    throw error
  }
  const port = Number(readFileSync(portFile, 'utf8'))
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    log: () => log,
    config,
    signal: (name) => void child.kill(name),
    ended,
    stop,
    [Symbol.asyncDispose]: async () => {
      if (existsSync(folder)) await stop()
    },
  }
}

export type Answered = { readonly status: number; readonly body: string }

export async function ask(url: string, init: RequestInit = {}): Promise<Answered> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(farMs) })
  return { status: response.status, body: await response.text() }
}

/** Signs Ann in; with another password, a failed attempt. */
export const signIn = async (
  { url }: Pick<ServeNode, 'url'>,
  password: string = admin.password,
  userName: string = admin.userName,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> =>
  await ask(`${url}/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body: JSON.stringify({ provider: 'credentials', UserName: userName, Password: password }),
  })

export const tokenOf = ({ body }: Pick<Answered, 'body'>): string =>
  String((JSON.parse(body) as { BearerToken?: string }).BearerToken ?? '')

/** The status of a request that only a signed-in caller may make. */
export const statusAs = async ({ url }: Pick<ServeNode, 'url'>, token: string): Promise<number> =>
  (await ask(`${url}/auth`, { headers: { authorization: `Bearer ${token}`, accept: 'application/json' } })).status

/** A figure of /metrics. */
export async function figure({ url }: Pick<ServeNode, 'url'>, name: string): Promise<number | undefined> {
  const { body } = await ask(`${url}/metrics`)
  const line = body.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}
