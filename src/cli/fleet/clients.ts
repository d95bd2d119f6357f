import { Fault } from '../../core/base/errors.ts'
import { filesWithin, patienceMs } from '../../core/base/files/index.ts'
import { ProbeError } from '../../core/base/probe-error.ts'
import { proxySetting } from '../../core/base/proxy-variables.ts'
import type { Secret } from '../../core/base/settings/index.ts'
import { type Client, type CredentialSource, openClient, Trust } from '../../core/client/index.ts'
import type { Io } from '../io/io.ts'
import { type CommandSession, connectionOf, credentialFor, shownUrl } from '../session/session.ts'
import type { FleetFlags, FleetTarget } from './targets.ts'

/** How many tasks run at once. Others wait for their turn, in the order in which they came. */
export class TaskLimit {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  async use<R>(work: () => Promise<R>): Promise<R> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free += 1
    }
  }
}

/** Keychains are read by child processes. */
const keychainsAtOnce = 4

/** Opens a session at each server. All of them share what is read once, and the requests that run at once. */
export class FleetClients {
  readonly #flags: FleetFlags
  readonly #io: Io
  readonly #requests: TaskLimit
  readonly #signIns = new TaskLimit(keychainsAtOnce)
  readonly #trust = new Map<string | undefined, Trust>()

  constructor(flags: FleetFlags, io: Io, requests: TaskLimit) {
    this.#flags = flags
    this.#io = io
    this.#requests = requests
  }

  /** Throws a Fault for a server that cannot be requested, such as one with an unusable CA file. */
  async open(target: FleetTarget): Promise<CommandSession> {
    const client = this.#client(target, await proxyOf(target))
    return {
      env: this.#io.env,
      target: { kind: 'server', url: target.url, origin: '--server' },
      label: shownUrl(target.url),
      service: client,
      runtime: undefined,
      [Symbol.asyncDispose]: async () => client.close(),
    }
  }

  #client(target: FleetTarget, proxy: string | undefined): Client {
    const { url, profile } = target
    const { env } = this.#io
    const at = { kind: 'server', url, origin: '--server', profile } as const
    const own = connectionOf(at, this.#flags as Omit<FleetFlags, 'server'>, env)
    const caFile = own.caFile ?? target.caFile
    const trust = this.#trust.get(caFile) ?? new Trust(caFile)
    this.#trust.set(caFile, trust)
    const signIn = credentialFor(at, undefined, { ...own, caFile }, this.#io)
    return openClient({
      ...own,
      caFile,
      trust,
      insecureHttp: own.insecureHttp || target.insecureHttp,
      env: proxy === undefined ? env : { [proxySetting]: proxy },
      credential: target.credential
        ? fromSecret(target.credential)
        : { ...signIn, current: () => this.#signIns.use(() => signIn.current()) },
      inTurn: (work) => this.#requests.use(work),
    })
  }
}

/** The proxy of an entry of the fleet file, with the account there. */
async function proxyOf({ proxy, proxyUsername, proxyPassword }: FleetTarget): Promise<string | undefined> {
  if (proxy === undefined || proxyPassword === undefined) return proxy
  const url = new URL(proxy)
  url.username = encodeURIComponent(proxyUsername ?? '')
  url.password = encodeURIComponent(await revealed(proxyPassword, 'proxyPassword'))
  return url.href
}

/** Throws Fault `Local` for a secret that cannot be read. `setting`: the one that names it. */
async function revealed(secret: Secret, setting: string): Promise<string> {
  return await secret.reveal(filesWithin(patienceMs)).catch((error: unknown) => {
    if (error instanceof ProbeError) throw unusable(error.message, setting)
    throw error
  })
}

const unusable = (why: string, setting: string): Fault =>
  new Fault('Local', why, { hints: [`Correct it, or \`${setting}:\`.`] })

/** The credential of an entry of the fleet file, which belongs to its URL alone. It is never renewed (K5). */
const fromSecret = (secret: Secret): CredentialSource => ({
  always: true,
  current: async () => {
    const token = await revealed(secret, 'credential')
    if (/^[\x21-\x7e]+$/.test(token)) return { kind: 'bearer', token }
    const why = `the credential ${secret.origin} contains blanks or characters that are invalid in a token`
    throw unusable(why, 'credential')
  },
  renew: async () => {
    throw new Fault('Unauthorized', `the server refuses the credential ${secret.origin}`, { remoteStatus: 401 })
  },
})
