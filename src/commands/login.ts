import { SvcCommand } from '../cli/base.ts'
import { refuseTokenFromEnvironment } from '../cli/credentials.ts'
import { boolean, connectionFlags, text } from '../cli/flags.ts'
import type { PresentedSignIn } from '../cli/login-run.ts'
import { profileScope } from '../cli/other-target.ts'
import type { Settings } from '../cli/profiles.ts'
import { askLine, askSecret, canAsk, secretFromStdin } from '../cli/prompt.ts'
import { connectionOf, localCall, readSettings } from '../cli/session.ts'
import { type CommandTarget, chooseTarget } from '../cli/target.ts'
import { Fault } from '../core/errors.ts'
import { sanitizeLine } from '../core/sanitize.ts'

type ServerTarget = Extract<CommandTarget, { kind: 'server' }>
export default class Login extends SvcCommand {
  static override summary = 'Sign in to a server and store the token in the OS keychain'
  static override description =
    `Prompts for the password on a terminal; scripts use --password-stdin. The token is stored in the
keychain of the operating system, and commands renew it automatically. The server becomes a profile,
and the current one. From then on, health, heartbeat, roles assign|show|unassign, sessions, api,
whoami, passwd and logout act at that server, until svc profile use selects another one or --local
is given. users, keys, audit, heartbeats, secrets, monitors and roles holders always act on this
machine.

With -- COMMAND, nothing is stored: COMMAND runs with SVC_TOKEN and SVC_SERVER, and the token is
revoked when COMMAND ends.`
  static override examples = [
    '<%= config.bin %> login --server https://svc.example.com -u alice',
    '<%= config.bin %> login --server https://svc.example.com --password-stdin < secret',
    '<%= config.bin %> login --server https://svc.example.com -- bash',
  ]
  static override flags = {
    server: text('server')({ description: 'URL of the server (SVC_SERVER)', helpGroup: 'TARGET' }),
    profile: text('profile')({
      description: 'With --server, the name of the new profile; otherwise the profile to sign in to (SVC_PROFILE)',
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
    'remember-me': boolean({ description: 'Request a longer session' }),
    'insecure-storage': boolean({ description: 'Store the token in a 0600 file instead of the keychain' }),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const command = this.takeCommand('svc login --server URL -- bash')
    const { flags } = await this.parse(Login)
    refuseTokenFromEnvironment('login', process.env)
    const settings = await readSettings(process.env)
    const target = await this.where(flags, settings)
    const { serverOf } = await import('../cli/credentials.ts')
    const connection = connectionOf(target, flags, process.env)
    const server = serverOf(target.url, connection.insecureHttp)
    this.target = server
    const user = flags.user ?? target.profile?.user
    refuseToAsk(flags, user)
    const storage = flags['insecure-storage'] ? 'file' : 'keychain'
    if (!command) {
      const { tokenStore } = await import('../cli/token-store.ts')
      // Before the password prompt, so that nobody types it in vain.
      await tokenStore({ server, user: user ?? '', storage }, process.env).prove()
    }
    const presented = await present(flags, user, server, signal)
    const { signIn } = await import('../cli/login-run.ts')
    const how = { provider: flags.provider, rememberMe: flags['remember-me'] }
    const signedIn = await signIn(connection, presented, how, localCall(signal))
    if (command) {
      const { lendToken } = await import('../cli/lend-token.ts')
      return await lendToken(command, signedIn, { connection, server }, (text) => this.say(text))
    }
    const { keepSignIn } = await import('../cli/login-run.ts')
    const to = { server, storage, connection, profile: target.profile?.name ?? flags.profile } as const
    const credential = await keepSignIn(signedIn, to, process.env, signal)
    this.print(flags.json ? JSON.stringify(credential) : screen(credential).map(sanitizeLine).join('\n'))
    return undefined
  }

  private async where(
    flags: { readonly server?: string | undefined; readonly profile?: string | undefined },
    settings: Settings,
  ): Promise<ServerTarget> {
    // With a URL, --profile is only the name to save it under.
    const target = await chooseTarget(flags, process.env, async () => settings)
    if (target.kind === 'server') return target
    throw new Fault('Usage', '--server is missing', {
      hints: ['svc login --server https://svc.example.com'],
    })
  }
}

const screen = (answer: {
  readonly server: string
  readonly user: string
  readonly roles: readonly string[] | undefined
  readonly profile: string
  readonly where: string
}): readonly string[] => [
  `Signed in to ${answer.server} as ${answer.user} (${rolesOf(answer)})`,
  `Token stored in: ${answer.where}`,
  `Profile ${answer.profile} is now the current one.`,
  ...profileScope,
]

function rolesOf({ roles }: { readonly roles: readonly string[] | undefined }): string {
  if (roles === undefined) return 'this server does not report roles'
  return roles.length > 0 ? `roles: ${roles.join(', ')}` : 'no roles'
}

type LoginFlags = {
  readonly 'password-stdin': boolean
  readonly 'token-stdin': boolean
  readonly json: boolean
  readonly provider: string
}

/** Never prompts without a terminal; names the missing input instead. */
function refuseToAsk(flags: LoginFlags, user: string | undefined): void {
  if (flags['token-stdin']) return
  const asks = canAsk() && !flags.json
  if (user === undefined && (!asks || flags['password-stdin'])) {
    throw new Fault('Usage', '--user is missing', { hints: ['svc login … -u NAME'] })
  }
  if (asks || flags['password-stdin']) return
  throw new Fault('Usage', 'there is no terminal to prompt for the password', {
    hints: [
      'From a file or pipe:  svc login … --password-stdin < FILE',
      'A token or key:       svc login … --token-stdin < FILE',
    ],
  })
}

async function present(
  flags: LoginFlags,
  user: string | undefined,
  server: string,
  signal: AbortSignal,
): Promise<PresentedSignIn> {
  if (flags['token-stdin']) {
    return { kind: 'token', token: (await secretFromStdin('--token-stdin', signal)).trim() }
  }
  const name = user ?? (await askLine(`User at ${server}`, signal))
  const password = flags['password-stdin']
    ? await secretFromStdin('--password-stdin', signal)
    : await askSecret(`Password of ${sanitizeLine(name)} at ${server}`, signal)
  return { kind: 'password', user: name, password }
}
