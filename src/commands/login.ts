import { boolean } from '@oclif/core/flags'
import { SvcCommand } from '../cli/base.ts'
import { connectionFlags } from '../cli/connection-flags.ts'
import { text } from '../cli/flags.ts'
import { refuseGivenToken } from '../cli/given-token.ts'
import type { Presented, SignedIn } from '../cli/login-run.ts'
import type { Profile, Settings } from '../cli/profiles.ts'
import { safeLine } from '../cli/safe-text.ts'
import { connectionOf, localCall, readSettings } from '../cli/session.ts'
import { chooseTarget, type Target } from '../cli/target.ts'
import { Fault } from '../core/errors.ts'

type ServerTarget = Extract<Target, { kind: 'server' }>
type Means = {
  readonly connection: ReturnType<typeof connectionOf>
  readonly server: string
  readonly signal: AbortSignal
}

export default class Login extends SvcCommand {
  static override summary = 'Sign in to a server and keep the token in the OS keychain'
  static override description =
    `Asks for the password on a terminal; scripts give it by --password-stdin. What is kept lies in the
keychain of the operating system, and commands renew it by themselves. The server becomes a profile,
and the current one: commands act there until svc profile use says otherwise.

With -- COMMAND nothing is stored: COMMAND runs with SVC_TOKEN and SVC_SERVER, and the token is
revoked when it ends.`
  static override examples = [
    '<%= config.bin %> login --server https://svc.example.com -u alice',
    '<%= config.bin %> login --server https://svc.example.com -u alice --password-stdin < secret',
    '<%= config.bin %> login --server https://svc.example.com -- bash',
  ]
  static override flags = {
    server: text('server')({ description: 'URL of the server (SVC_SERVER)', helpGroup: 'TARGET' }),
    profile: text('profile')({
      description: 'With --server, the name to save it under; else where to sign in (SVC_PROFILE)',
      helpGroup: 'TARGET',
    }),
    'ca-file': connectionFlags['ca-file'],
    'insecure-http': connectionFlags['insecure-http'],
    user: text('user')({ char: 'u', description: 'User name or e-mail' }),
    provider: text('provider')({ description: 'Sign-in provider', default: 'credentials' }),
    'password-stdin': boolean({ description: 'Read the password from standard input', exclusive: ['token-stdin'] }),
    'token-stdin': boolean({
      description: "Read a token or key from standard input; with --provider, that provider's access token",
    }),
    'remember-me': boolean({ description: 'Ask the server for a longer sign-in' }),
    'insecure-storage': boolean({ description: 'Keep the token in a 0600 file instead of the keychain' }),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const command = this.takeCommand()
    const { flags } = await this.parse(Login)
    refuseGivenToken('login', process.env)
    const settings = await readSettings(process.env)
    const target = await this.where(flags, settings)
    const { serverOf } = await import('../cli/sign-in.ts')
    const connection = connectionOf(target, flags, process.env)
    const server = serverOf(target.url, connection.insecureHttp)
    this.target = server
    const means: Means = { connection, server, signal }
    const user = flags.user ?? target.profile?.user
    refuseToAsk(flags, user)
    const storage = flags['insecure-storage'] ? 'file' : 'keychain'
    if (!command) {
      const { tokenStore } = await import('../cli/token-store.ts')
      // Before the password: nobody types one for nothing.
      await tokenStore({ server, user: user ?? '', storage }, process.env).prove()
    }
    const presented = await present(flags, user, server, signal)
    const signedIn = await this.signIn(presented, { ...flags, rememberMe: flags['remember-me'] }, means)
    if (command) return await this.runCommand(command, signedIn, means)
    await this.keep(signedIn, { target, settings, storage, named: flags.profile, flags: connection }, means)
    return undefined
  }

  /** What follows `--`, which is not ours to read. */
  private takeCommand(): readonly string[] | undefined {
    const end = this.argv.indexOf('--')
    if (end === -1) return undefined
    const command = this.argv.slice(end + 1)
    this.argv = this.argv.slice(0, end)
    if (command.length > 0) return command
    throw new Fault('Usage', 'no command follows --', { hints: ['For example: svc login --server URL -- bash'] })
  }

  private async where(
    flags: { readonly server?: string | undefined; readonly profile?: string | undefined },
    settings: Settings,
  ): Promise<ServerTarget> {
    // Beside a URL, --profile is only the name to save it under.
    const target = await chooseTarget(flags, process.env, async () => settings)
    if (target.kind === 'server') return target
    throw new Fault('Usage', '--server is missing: where to sign in?', {
      hints: ['svc login --server https://svc.example.com'],
    })
  }

  private async signIn(
    presented: Presented,
    flags: { readonly provider: string; readonly rememberMe: boolean },
    { connection, server, signal }: Means,
  ): Promise<SignedIn> {
    const [{ openClient }, { signIn }] = await Promise.all([
      import('../core/client/index.ts'),
      import('../cli/login-run.ts'),
    ])
    const client = openClient(connection)
    try {
      return await signIn(client, presented, { ...flags, server }, localCall(signal))
    } finally {
      client.close()
    }
  }

  private async runCommand(command: readonly string[], { kept, user }: SignedIn, means: Means): Promise<number> {
    const { connection, server } = means
    const [{ revoke }, { memoryCredential }, { openClient }, { runWithToken }] = await Promise.all([
      import('../cli/login-run.ts'),
      import('../cli/memory-credential.ts'),
      import('../core/client/index.ts'),
      import('../cli/run-with-token.ts'),
    ])
    const credential = memoryCredential(kept, () => openClient(connection))
    try {
      if (kept.at === undefined) {
        throw new Fault('NotImplemented', `${server} gives sessions and no tokens, so no command can be given one`, {
          hints: ['Sign in without -- COMMAND.'],
        })
      }
      this.say(`Signed in to ${server} as ${safeLine(user)} for ${safeLine(command[0] ?? '')} only.`)
      return await runWithToken(command, { token: kept.at, server, caFile: connection.caFile }, process.env)
    } finally {
      // ctrl-C has ended the command by now; the sign-in must end all the same.
      await revoke({ ...connection, credential }, localCall(AbortSignal.timeout(10_000))).then(
        () => this.say(`Signed out of ${server}.`),
        (error: unknown) => this.say(`Warning: the sign-in at ${server} could not be ended: ${told(error)}`),
      )
    }
  }

  private async keep(
    signedIn: SignedIn,
    to: {
      readonly target: ServerTarget
      readonly settings: Settings
      readonly storage: 'keychain' | 'file'
      readonly named: string | undefined
      readonly flags: { readonly caFile: string | undefined; readonly insecureHttp: boolean }
    },
    { connection, server, signal }: Means,
  ): Promise<void> {
    const [{ tokenStore, credentialOf }, { changeSettings, checkedName, withProfile }] = await Promise.all([
      import('../cli/token-store.ts'),
      import('../cli/profiles.ts'),
    ])
    const { user, kept, roles, permissions } = signedIn
    const store = tokenStore({ server, user, storage: to.storage }, process.env)
    const name = to.target.profile?.name ?? (to.named ? checkedName(to.named) : nameFor(server, to.settings.profiles))
    const replaced = to.settings.profiles.find((profile) => profile.name === name)
    const end = await this.formerSignIn(replaced, connection)
    try {
      await store.write(kept)
      await changeSettings(
        process.env,
        (settings) => {
          const before = settings.profiles.find((profile) => profile.name === name)
          const profile: Profile = {
            ...(before?.server === server ? before : {}),
            name,
            server,
            user,
            storage: to.storage,
            roles,
            permissions,
            ...(to.flags.caFile === undefined ? {} : { caFile: to.flags.caFile }),
            ...(to.flags.insecureHttp ? { insecureHttp: true } : {}),
          }
          return { ...withProfile(settings, profile), current: name }
        },
        signal,
      )
    } catch (error) {
      // What nobody can use must not stay valid.
      const { openClient } = await import('../core/client/index.ts')
      const client = openClient(connection)
      const call = { ...localCall(AbortSignal.timeout(5_000)), credential: credentialOf(kept) }
      await client.authenticate({ provider: 'logout' }, call).catch(() => {})
      client.close()
      await store.remove().catch(() => {})
      throw error
    }
    await end(user, to.storage)
    const { flags } = await this.parse(Login)
    const answer = { server, user, roles, permissions, profile: name, storage: to.storage, where: store.where }
    this.print(flags.json ? JSON.stringify(answer) : safe(screen(answer)))
  }

  /** Ends what this sign-in takes the place of, once that is kept: at the server, and here if it was another user's. */
  private async formerSignIn(
    replaced: Profile | undefined,
    connection: Means['connection'],
  ): Promise<(user: string, storage: string) => Promise<void>> {
    const { signInOf } = await import('../cli/sign-in.ts')
    const former = replaced && signInOf(replaced)
    if (!former) return async () => {}
    const { tokenStore, credentialOf } = await import('../cli/token-store.ts')
    const store = tokenStore(former, process.env)
    const kept = await store.read().catch(() => undefined)
    return async (user, storage) => {
      if (former.user !== user || former.storage !== storage) await store.remove().catch(() => {})
      const credential = kept && credentialOf(kept)
      // Its token is for its own server alone.
      if (!credential) return
      const { openClient } = await import('../core/client/index.ts')
      const client = openClient({ ...connection, baseUrl: former.server })
      const call = { ...localCall(AbortSignal.timeout(3_000)), credential }
      await client.authenticate({ provider: 'logout' }, call).catch(() => {})
      client.close()
    }
  }
}

const told = (error: unknown): string => (error instanceof Error ? safeLine(error.message) : 'unknown')
const safe = (lines: readonly string[]): string => lines.map((line) => safeLine(line)).join('\n')

const screen = (answer: {
  readonly server: string
  readonly user: string
  readonly roles: readonly string[]
  readonly profile: string
  readonly where: string
}): readonly string[] => [
  `Signed in to ${answer.server} as ${answer.user} (${
    answer.roles.length > 0 ? `roles: ${answer.roles.join(', ')}` : 'no roles'
  })`,
  `Token kept in: ${answer.where}`,
  `Profile ${answer.profile} is now the current one: commands act there. --local acts on this machine.`,
]

/** The host's name, with its port and path where another server has that already. */
function nameFor(server: string, profiles: readonly Profile[]): string {
  const { host, pathname } = new URL(server)
  const plain = host.replace(/[[\]]/g, '').replace(/^:+/, '')
  const free = (name: string): boolean => !profiles.some((one) => one.name === name && one.server !== server)
  const own = profiles.find((profile) => profile.server === server)
  if (own) return own.name
  return [plain, `${plain}${pathname.replace(/\/$/, '')}`].find(free) ?? `${plain}-${profiles.length + 1}`
}

type Given = {
  readonly 'password-stdin': boolean
  readonly 'token-stdin': boolean
  readonly json: boolean
  readonly provider: string
}

/** No prompt without a terminal, ever: what is missing is named. */
function refuseToAsk(flags: Given, user: string | undefined): void {
  if (flags['token-stdin']) return
  const asks = process.stdin.isTTY === true && process.stderr.isTTY === true && !flags.json
  if (user === undefined && (!asks || flags['password-stdin'])) {
    throw new Fault('Usage', '--user is missing: who signs in?', { hints: ['svc login … -u NAME'] })
  }
  if (asks || flags['password-stdin']) return
  throw new Fault('Usage', 'there is no terminal to ask for the password on', {
    hints: [
      'From a file or pipe:  svc login … --password-stdin < FILE',
      'A token or key:       svc login … --token-stdin < FILE',
    ],
  })
}

async function present(
  flags: Given,
  user: string | undefined,
  server: string,
  signal: AbortSignal,
): Promise<Presented> {
  const { askLine, askSecret, secretFromStdin } = await import('../cli/prompt.ts')
  if (flags['token-stdin']) {
    return { kind: 'token', token: (await secretFromStdin('--token-stdin', signal)).trim() }
  }
  const name = user ?? (await askLine(`User at ${server}`, signal))
  const password = flags['password-stdin']
    ? await secretFromStdin('--password-stdin', signal)
    : await askSecret(`Password of ${safeLine(name)} at ${server}`, signal)
  return { kind: 'password', user: name, password }
}
