import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { farMs } from '../suite/until.ts'
import { compiledCode } from './compiled-code.ts'
import { type Serving, serving } from './serving.ts'
import { unwatched } from './unwatched.ts'

export const admin = { userName: 'Ann', password: 'violet-harbour-42' } as const

/** A real `svc serve` of the built program on a store that others may use too. */
export type ServeNode = Serving & {
  /** Its svc.yaml. */
  readonly config: string
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
  program,
  only,
  port,
}: NodeOptions): Promise<ServeNode> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-node-'))
  mkdirSync(join(folder, 'files'), { mode: 0o700 })
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, 'files', name), content, { mode: 0o600 })
    return join(folder, 'files', name)
  }
  const config = file('svc.yaml', unwatched(yaml))
  const args = [
    ...['--config', config],
    ...(only === undefined
      ? ['--bootstrap-admin', admin.userName, '--bootstrap-password-file', file('password', admin.password)]
      : ['--only', only]),
    ...flags,
  ]
  const node = await serving(args, {
    folder: join(folder, 'files'),
    port,
    program,
    within: (svc) => [...command, ...svc],
    env: { ...envOf(folder), SVC_STORE: store, ...env },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  })
  return { ...node, config }
}

/** `retryAfterMs`: when to ask again, by its Retry-After. */
export type Answered = {
  readonly status: number
  readonly body: string
  readonly retryAfterMs?: number | undefined
}

export async function ask(url: string, init: RequestInit = {}): Promise<Answered> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(farMs) })
  const retryAfter = response.headers.get('retry-after')
  const retryAfterMs = retryAfter === null ? undefined : Number(retryAfter) * 1_000
  return { status: response.status, body: await response.text(), retryAfterMs }
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
