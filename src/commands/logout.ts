import { prints, SvcCommand } from '../cli/command/base.ts'
import { boolean, connectionFlags } from '../cli/command/flags.ts'
import { refuseTokenFromEnvironment } from '../cli/credentials/credentials.ts'
import { thisMachine } from '../cli/io/process.ts'
import { document, oneOf, string, strings } from '../cli/render/document.ts'
import { connectionOf, localCall, readSettings } from '../cli/session/session.ts'
import type { ServerProfile } from '../cli/settings/profiles.ts'
import { chooseTarget } from '../cli/settings/target.ts'
import { exits, Fault } from '../core/base/errors.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

type Result = {
  readonly profile: string
  readonly server: string
  readonly user: string
  /** The outcome at the server. */
  readonly atServer: 'revoked' | 'ended before' | 'still valid' | 'not reached'
  readonly here: 'forgotten' | 'nothing kept' | 'not removed'
  readonly problems: readonly string[]
}

const signOuts = document<Result>()({
  around: { target: string },
  rows: 'signIns',
  members: {
    profile: string,
    server: string,
    user: string,
    atServer: oneOf('revoked', 'ended before', 'still valid', 'not reached'),
    here: oneOf('forgotten', 'nothing kept', 'not removed'),
    problems: strings,
  },
})

export default class Logout extends SvcCommand {
  static override summary = 'Sign out: revoke the token at the server and delete it here'
  static override description =
    `Prints both results. The exit code is 10 if one of them failed: for example, a ServiceStack server
with JWTs cannot revoke a token before it expires.`
  static override answers = { '': prints(async () => signOuts) }
  static override examples = ['<%= config.bin %> logout', '<%= config.bin %> logout --all']
  static override flags = {
    all: boolean({ description: 'Sign out of every profile', exclusive: ['server', 'profile'] }),
    server: connectionFlags.server,
    profile: connectionFlags.profile,
    'ca-file': connectionFlags['ca-file'],
    'insecure-http': connectionFlags['insecure-http'],
  }

  protected async perform(signal: AbortSignal): Promise<number> {
    const { flags } = await this.parse(Logout)
    refuseTokenFromEnvironment('logout', this.io.env)
    const settings = await readSettings(this.io.env)
    const { signedInProfile } = await import('../cli/credentials/credentials.ts')
    let profiles: readonly ServerProfile[] = settings.profiles.filter((profile) => profile.user !== undefined)
    if (!flags.all) {
      const target = await chooseTarget(flags, this.io.env, async () => settings)
      if (target.kind === 'local') {
        throw new Fault('Usage', 'no profile is current', {
          hints: ['svc logout --server URL, --profile NAME or --all', 'svc profile list shows the profiles.'],
        })
      }
      const chosen = signedInProfile(target, settings)
      profiles = chosen ? [chosen] : []
      this.target = target.profile?.server ?? target.url
    }
    const results: Result[] = []
    for (const profile of profiles) results.push(await this.signOut(profile, flags, signal))
    if (flags.json) this.print(signOuts.text({ target: this.target ?? thisMachine }, results))
    else if (results.length === 0) this.print('Nobody was signed in.')
    else this.print(results.flatMap(screen).join('\n'))
    return results.every(isDone) ? exits.ok.code : exits.partial.code
  }

  private async signOut(
    profile: ServerProfile,
    flags: { readonly 'ca-file'?: string | undefined; readonly 'insecure-http'?: boolean },
    signal: AbortSignal,
  ): Promise<Result> {
    const [
      { changeSettings, signedOut, withProfile },
      { signedInAt, signInOf },
      { revoke },
      { tokenStore, underLock },
    ] = await Promise.all([
      import('../cli/settings/profiles.ts'),
      import('../cli/credentials/credentials.ts'),
      import('../cli/sign-in/login-run.ts'),
      import('../cli/credentials/token-store.ts'),
    ])
    const signIn = signInOf(profile)
    if (!signIn) throw new TypeError('a profile without a user')
    const target = { kind: 'server', url: profile.server, origin: '--profile', profile } as const
    const connection = connectionOf(target, flags, this.io.env)
    const problems: string[] = []
    const note = (error: unknown): void => {
      signal.throwIfAborted()
      if (!(error instanceof Fault)) throw error
      problems.push(error.message)
    }
    const store = tokenStore(signIn, this.io.env)
    let revoked: boolean | undefined
    await store.read().then((stored) => {
      revoked = stored !== undefined
    }, note)
    let atServer: Result['atServer'] = 'not reached'
    if (revoked === false) atServer = 'ended before'
    if (revoked) {
      const credential = signedInAt(target, { path: '', current: undefined, profiles: [] }, connection, this.io)
      await revoke({ ...connection, credential }, localCall(signal)).then((done) => {
        atServer = done
      }, note)
    }
    let here: Result['here'] = 'not removed'
    await underLock(signIn, this.io.env, signal, () => store.remove()).then((removed) => {
      here = removed ? 'forgotten' : 'nothing kept'
    }, note)
    // A token in an unreachable keychain stays listed, so that it can be removed later.
    if (here !== 'not removed') {
      await changeSettings(
        this.io.env,
        (settings) => {
          const now = settings.profiles.find((one) => one.name === profile.name)
          return now?.user === profile.user ? now && withProfile(settings, signedOut(now)) : undefined
        },
        signal,
      )
    }
    return {
      profile: profile.name,
      server: profile.server,
      user: signIn.user,
      atServer,
      here,
      problems: [...new Set(problems)],
    }
  }
}

const isDone = ({ atServer, here }: Pick<Result, 'atServer' | 'here'>): boolean =>
  (atServer === 'revoked' || atServer === 'ended before') && here !== 'not removed'

const atServerText: Record<Result['atServer'], string> = {
  revoked: 'the token is revoked',
  'ended before': 'the session had already ended',
  'still valid': 'the server cannot revoke its tokens (JWT); the token stays valid until it expires',
  'not reached': 'the server could not be reached; the token stays valid until it expires',
}
const hereText: Record<Result['here'], string> = {
  forgotten: 'the token is deleted',
  'nothing kept': 'there was no token',
  'not removed': 'the token could not be removed',
}

const screen = ({ server, user, atServer, here, problems }: Result): readonly string[] => [
  `${isDone({ atServer, here }) ? 'Signed' : 'Partly signed'} out of ${sanitizeLine(server)} (${sanitizeLine(user)})`,
  `  at the server: ${atServerText[atServer]}`,
  `  here: ${hereText[here]}`,
  ...problems.map((problem) => `  ${sanitizeLine(problem)}`),
]
