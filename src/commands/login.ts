import { prints, SvcCommand } from '../cli/command/base.ts'
import { boolean, connectionFlags, text, variable } from '../cli/command/flags.ts'
import { askLine, askSecret, canAsk, newPassword, secretFromStdin } from '../cli/command/prompt.ts'
import { refuseTokenFromEnvironment } from '../cli/credentials/credentials.ts'
import type { Io } from '../cli/io/io.ts'
import { machine } from '../cli/io/process.ts'
import { document, oneOf, optional, string, strings } from '../cli/render/document.ts'
import { note } from '../cli/render/note.ts'
import { profileScope } from '../cli/session/other-target.ts'
import { connectionOf, localCall, readSettings } from '../cli/session/session.ts'
import type { Settings } from '../cli/settings/profiles.ts'
import { type CommandTarget, chooseTarget } from '../cli/settings/target.ts'
import type { PresentedSignIn, SignedIn, StoredAs } from '../cli/sign-in/login-run.ts'
import type { OpenIdProvider } from '../cli/sign-in/openid/index.ts'
import { Fault } from '../core/base/errors.ts'
import { passwordRule } from '../core/base/names.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

type ServerTarget = Extract<CommandTarget, { kind: 'server' }>
const signIns = document<StoredAs>()({
  around: { target: string },
  rows: 'signIns',
  members: {
    server: string,
    user: string,
    roles: optional(strings),
    permissions: optional(strings),
    provider: optional(string),
    profile: string,
    storage: oneOf('keychain', 'file'),
    where: string,
  },
})

export default class Login extends SvcCommand {
  static override summary = 'Sign in to a server and store the token in the OS keychain'
  static override description =
    `Prompts for the password on a terminal; scripts use --password-stdin. svc stores the token in the
keychain of the operating system and renews it automatically. It saves the server as a profile and
makes it the current one. After that, health, history, heartbeat, roles assign|extend|give-back|show|unassign,
sessions, api, whoami, passwd and logout act at that server, until you select another one with svc profile use, or use
--local. users, keys, audit, heartbeats, secrets, monitors and roles holders always act on this
machine.

With --provider NAME, you sign in at an OpenID provider of the server, in the browser of this machine.
With --no-browser, or if there is no browser (in an SSH session, for example), svc prints an address and
a code for a browser on any device. The variable BROWSER selects the browser. svc does not store tokens
of the provider.

With -- COMMAND, svc stores nothing: it runs COMMAND with SVC_TOKEN and SVC_SERVER, and revokes the token
when COMMAND ends.`
  static override answers = { '': prints(async () => signIns) }
  static override examples = [
    '<%= config.bin %> login --server https://svc.example.com -u alice',
    '<%= config.bin %> login --server https://svc.example.com --password-stdin < password.txt',
    '<%= config.bin %> login --server https://svc.example.com --provider corp',
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
    provider: text('provider')({ description: 'Sign-in provider of the server', default: 'credentials' }),
    'no-browser': boolean({
      description: 'With an OpenID provider, print an address and a code instead of opening a browser',
    }),
    'same-client': boolean({
      description: 'Allow a client of the OpenID provider that another of your servers uses, too',
    }),
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
    refuseTokenFromEnvironment('login', this.io.env)
    const settings = await readSettings(this.io.env)
    const target = await this.where(flags, settings)
    const { serverOf } = await import('../cli/credentials/credentials.ts')
    const connection = connectionOf(target, flags, this.io.env)
    const server = serverOf(target.url, connection.insecureHttp)
    this.target = server
    const user = flags.user ?? target.profile?.user
    const openId = await openIdProvider(flags, connection, signal)
    if (!openId) refuseToAsk(flags, user, this.io)
    const storage = flags['insecure-storage'] ? 'file' : 'keychain'
    if (!command) {
      const { tokenStore } = await import('../cli/credentials/token-store.ts')
      // Before the password prompt, so that nobody types it in vain.
      await tokenStore({ server, user: user ?? '', storage }, this.io.env).prove()
    }
    const prompts = !openId && !flags['password-stdin'] && !flags['token-stdin']
    if (prompts) await (await import('../cli/sign-in/login-run.ts')).demandAnswer(connection, localCall(signal))
    if (openId && !flags['same-client']) refuseSharedClient(openId, server, settings)
    const presented = openId
      ? await throughProvider(openId, flags, connection, this.io, signal)
      : await present(flags, user, server, this.io, signal)
    const { signIn } = await import('../cli/sign-in/login-run.ts')
    const how = { provider: openId?.name ?? flags.provider, rememberMe: flags['remember-me'] }
    const first = await signIn(connection, presented, how, localCall(signal))
    const signedIn = await this.changed(first, { connection, presented, flags, signal })
    if (command) {
      const { lendToken } = await import('../cli/sign-in/lend-token.ts')
      return await lendToken(command, signedIn, { connection, server }, (text) => this.say(text), this.io)
    }
    const { keepSignIn } = await import('../cli/sign-in/login-run.ts')
    const { announcesRoleChanges } = await import('../cli/sign-in/announced.ts')
    const roleChangesInOneRequest = await announcesRoleChanges(connection, localCall(signal))
    const client = openId && { issuer: openId.issuer, clientId: openId.clientId }
    const profile = target.profile?.name ?? flags.profile
    const to = { server, storage, connection, profile, openId: client, roleChangesInOneRequest } as const
    const credential = await keepSignIn(signedIn, to, this.io.env, signal)
    this.print(
      flags.json ? signIns.text({ target: server }, [credential]) : screen(credential).map(sanitizeLine).join('\n'),
    )
    return undefined
  }

  /** The sign-in with a new password, where nothing else is allowed before (P71). Without a terminal, a note says so. */
  private async changed(
    signedIn: SignedIn,
    {
      connection,
      presented,
      flags,
      signal,
    }: {
      readonly connection: Connection
      readonly presented: PresentedSignIn
      readonly flags: LoginFlags
      readonly signal: AbortSignal
    },
  ): Promise<SignedIn> {
    if (!signedIn.mustChange) return signedIn
    if (presented.kind === 'token' || flags['password-stdin'] || flags.json || !canAsk(this.io)) {
      this.say('Note: the password must be changed before anything else: svc passwd')
      return signedIn
    }
    const { changeFirst } = await import('../cli/sign-in/login-run.ts')
    const { inUserWords, loadAccountRules } = await import('../cli/session/admin.ts')
    const { passwordProblems } = await loadAccountRules()
    const rule = `The password of ${sanitizeLine(signedIn.user)} must be changed now. ${passwordRule}`
    const refusal = async (typed: string) =>
      typed === presented.password
        ? 'the new password must differ from the current one'
        : inUserWords(await passwordProblems('Password', typed, { userName: signedIn.user }))
    const ask = () => newPassword({ message: 'New password:', rule, stdin: false, refusal }, this.io, signal)
    return await changeFirst(connection, signedIn, presented.password, ask)
  }

  private async where(
    flags: { readonly server?: string | undefined; readonly profile?: string | undefined },
    settings: Settings,
  ): Promise<ServerTarget> {
    // With a URL, --profile is only the name to save it under.
    const hasUrl = flags.server !== undefined || variable(this.io.env, 'SVC_SERVER') !== undefined
    const choice = { server: flags.server, profile: hasUrl ? undefined : flags.profile }
    const target = await chooseTarget(choice, this.io.env, async () => settings)
    if (target.kind === 'server') return target
    throw new Fault('Usage', '--server is missing', {
      hints: ['svc login --server https://svc.example.com'],
    })
  }
}

/**
 * A server that receives a token for the client of another one can sign in there as the user. Throws Usage before the
 * user signs in at the provider.
 */
function refuseSharedClient({ name, issuer, clientId }: OpenIdProvider, server: string, { profiles }: Settings): void {
  const other = profiles.find(
    ({ server: one, openId }) => one !== server && openId?.issuer === issuer && openId.clientId === clientId,
  )
  if (!other) return
  throw new Fault(
    'Usage',
    `${server} uses the same client of ${sanitizeLine(issuer)} as ${other.server}: each of the two could sign in at the other as you`,
    {
      hints: [
        `If the same people run both: svc login --server ${server} --provider ${name} --same-client`,
        'Otherwise, ask for a client id of its own for each server.',
      ],
    },
  )
}

const screen = (answer: {
  readonly server: string
  readonly user: string
  readonly roles: readonly string[] | undefined
  readonly provider: string | undefined
  readonly profile: string
  readonly where: string
}): readonly string[] => [
  `Signed in to ${answer.server} as ${answer.user}${by(answer.provider)} (${rolesOf(answer)})`,
  `Token stored in: ${answer.where}`,
  `Profile ${answer.profile} is now the current one.`,
  ...profileScope,
]

const by = (provider: string | undefined): string => (provider === undefined ? '' : ` by ${provider}`)

function rolesOf({ roles }: { readonly roles: readonly string[] | undefined }): string {
  if (roles === undefined) return 'this server does not report roles'
  return roles.length > 0 ? `roles: ${roles.join(', ')}` : 'no roles'
}

type LoginFlags = {
  readonly 'password-stdin': boolean
  readonly 'token-stdin': boolean
  readonly 'no-browser': boolean
  readonly user?: string | undefined
  readonly json: boolean
  readonly provider: string
}

/** Names of the provider that takes a password, on every server. */
const ofPasswords: ReadonlySet<string> = new Set(['credentials', 'login'])

type Connection = ReturnType<typeof connectionOf>

/**
 * The OpenID provider to sign in at. Undefined for a sign-in with a password, or with a token that the user already
 * has. Reads the providers of the server only where the command line leaves that open.
 */
async function openIdProvider(
  flags: LoginFlags,
  connection: Connection,
  signal: AbortSignal,
): Promise<OpenIdProvider | undefined> {
  const presents = flags['password-stdin'] || flags['token-stdin'] || flags.user !== undefined
  if (presents || ofPasswords.has(flags.provider.trim().toLowerCase())) {
    if (!flags['no-browser']) return undefined
    throw new Fault('Usage', '--no-browser is for OpenID providers', {
      hints: ['svc login --server URL --provider NAME --no-browser'],
    })
  }
  const { chooseProvider } = await import('../cli/sign-in/openid/index.ts')
  const choice = await chooseProvider(connection, flags.provider.trim(), localCall(signal))
  return choice.kind === 'openid' ? choice.provider : undefined
}

async function throughProvider(
  provider: OpenIdProvider,
  flags: LoginFlags,
  { caFile, userAgent, env }: Connection,
  io: Io,
  signal: AbortSignal,
): Promise<PresentedSignIn> {
  const { tokenOfProvider } = await import('../cli/sign-in/openid/index.ts')
  const token = await tokenOfProvider(
    provider,
    {
      link: { caFile, userAgent, env },
      env,
      platform: machine.platform,
      mayOpenBrowser: !flags['no-browser'],
      // Also with --quiet: nobody can sign in without the address.
      say: (text) => io.stderr.write(note(text, io.stderr)),
    },
    localCall(signal),
  )
  return { kind: 'token', token }
}

/** Never prompts without a terminal; names the missing input instead. */
function refuseToAsk(flags: LoginFlags, user: string | undefined, io: Io): void {
  if (flags['token-stdin']) return
  const asks = canAsk(io) && !flags.json
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
  io: Io,
  signal: AbortSignal,
): Promise<PresentedSignIn> {
  if (flags['token-stdin']) {
    return { kind: 'token', token: (await secretFromStdin('--token-stdin', io, signal)).trim() }
  }
  const name = user ?? (await askLine(`User at ${server}`, io, signal))
  const password = flags['password-stdin']
    ? await secretFromStdin('--password-stdin', io, signal)
    : await askSecret(`Password of ${sanitizeLine(name)} at ${server}`, io, signal)
  return { kind: 'password', user: name, password }
}
