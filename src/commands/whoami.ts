import { prints, SvcCommand } from '../cli/command/base.ts'
import { boolean, signInFlags } from '../cli/command/flags.ts'
import { tokenFromEnvironment } from '../cli/credentials/credentials.ts'
import type { ProcessEnvironment } from '../cli/io/io.ts'
import { thisMachine } from '../cli/io/process.ts'
import {
  dateTime,
  document,
  flag,
  listOf,
  objectOf,
  oneOf,
  optional,
  orNull,
  string,
  strings,
} from '../cli/render/document.ts'
import { localCall, openSession, readSettings } from '../cli/session/session.ts'
import { type CommandTarget, chooseTarget } from '../cli/settings/target.ts'
import { Fault } from '../core/base/errors.ts'
import { grantsRequest, readGrants } from '../core/protocol/index.ts'

type Facts = {
  readonly server: string | null
  readonly profile?: string | undefined
  readonly user?: string | undefined
  readonly roles?: readonly string[] | undefined
  readonly permissions?: readonly string[] | undefined
  /** Those of them that end by themselves, where the server says so (O8). */
  readonly ends?: readonly { readonly kind: string; readonly name: string; readonly endsAt: string }[] | undefined
  /** The provider that signed the user in, unless it was the server itself with a password. */
  readonly provider?: string | undefined
  /** When the access token expires, if it states that. It is renewed automatically. */
  readonly expires?: string | undefined
  readonly where: string
  readonly verified: boolean
}

const signIns = document<Facts>()({
  around: { target: string },
  rows: 'signIns',
  members: {
    server: orNull(string),
    profile: optional(string),
    user: optional(string),
    roles: optional(strings),
    permissions: optional(strings),
    ends: optional(listOf(objectOf({ kind: oneOf('role', 'permission'), name: string, endsAt: dateTime }))),
    provider: optional(string),
    expires: optional(string),
    where: string,
    verified: flag,
  },
})

export default class Whoami extends SvcCommand {
  static override summary = 'Show the signed-in user'
  static override description = `Without --verify, svc contacts no server. The exit code is 4 if nobody is signed in.`
  static override answers = { '': prints(async () => signIns) }
  static override examples = ['<%= config.bin %> whoami', '<%= config.bin %> whoami --verify --json']
  static override flags = {
    verify: boolean({ description: 'Verify the sign-in at the server; renews an expired token' }),
    ...signInFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(Whoami)
    const target = await chooseTarget(flags, this.io.env, () => readSettings(this.io.env))
    const token = tokenFromEnvironment(target, this.io.env)
    const stored =
      target.kind === 'local' ? onThisMachine(signal) : await factsOf(target, token !== undefined, this.io.env)
    if (target.kind === 'server') this.target = stored.server ?? target.url
    const facts = flags.verify && target.kind === 'server' ? await this.verified(stored, flags, target, signal) : stored
    const { factLines } = await import('../cli/render/table.ts')
    this.print(flags.json ? signIns.text({ target: facts.server ?? thisMachine }, [facts]) : factLines(rowsOf(facts)))
  }

  private async verified(
    stored: Facts,
    flags: Parameters<typeof openSession>[0],
    chosen: CommandTarget,
    signal: AbortSignal,
  ): Promise<Facts> {
    await using session = await openSession(flags, this.io, { chosen })
    const answer = await session.service.authenticate({}, localCall(signal, { verb: 'GET' }))
    const user = answer.UserName ?? stored.user
    const { Roles: roles, Permissions: permissions, Meta } = answer
    return { ...stored, user, roles, permissions, ends: endsIn(Meta?.[grantsRequest.key]), verified: true }
  }
}

function endsIn(text: string | undefined): Facts['ends'] {
  const ends = readGrants(text)?.flatMap(({ kind, name, endsAt }) =>
    endsAt === undefined ? [] : [{ kind, name, endsAt: new Date(endsAt).toISOString() }],
  )
  return ends && ends.length > 0 ? ends : undefined
}

function onThisMachine(signal: AbortSignal): Facts {
  const { caller } = localCall(signal)
  const user = caller.kind === 'local' ? caller.account : undefined
  return {
    server: null,
    user,
    where: 'this machine: anyone who can open the store has Admin rights there',
    verified: false,
  }
}

/** The locally known facts of the sign-in for a target. Throws `Fault` Unauthorized when there is none. */
async function factsOf(
  target: Extract<CommandTarget, { kind: 'server' }>,
  fromEnvironment: boolean,
  env: ProcessEnvironment,
): Promise<Facts> {
  const [{ serverOf, signedInProfile, signInOf }, { tokenStore }] = await Promise.all([
    import('../cli/credentials/credentials.ts'),
    import('../cli/credentials/token-store.ts'),
  ])
  const server = serverOf(target.url)
  if (fromEnvironment) return { server, where: 'SVC_TOKEN', verified: false }
  const profile = signedInProfile(target, await readSettings(env))
  const signIn = profile && signInOf(profile)
  const nobody = (): Fault =>
    new Fault('Unauthorized', `nobody is signed in at ${server}`, { hints: [`svc login --server ${server}`] })
  if (!profile || !signIn) throw nobody()
  const store = tokenStore(signIn, env)
  const stored = await store.read()
  if (!stored) throw nobody()
  return {
    server,
    profile: profile.name,
    user: profile.user,
    roles: profile.roles,
    permissions: profile.permissions,
    provider: profile.provider,
    expires: stored.exp === undefined ? undefined : new Date(stored.exp * 1_000).toISOString(),
    where: store.where,
    verified: false,
  }
}

/** A server that answers without a list does not report it, which is not the same as an empty list. */
function namesText(names: readonly string[] | undefined, { verified }: Facts): string | undefined {
  if (names === undefined) return verified ? 'not reported by this server' : undefined
  return names.length > 0 ? names.join(', ') : 'none'
}

function rowsOf(facts: Facts): readonly (readonly [name: string, value: string | undefined])[] {
  return [
    ['user', facts.user ?? (facts.verified ? 'not reported by the server' : 'unknown without --verify')],
    ['server', facts.server ?? undefined],
    ['profile', facts.profile],
    ['roles', namesText(facts.roles, facts)],
    ['permissions', namesText(facts.permissions, facts)],
    ['ends', facts.ends?.map(({ name, endsAt }) => `${name}: ${endsAt}`).join(', ')],
    ['signed in by', facts.provider],
    ['token ends', facts.expires && `${facts.expires} (renewed automatically)`],
    [facts.server === null ? 'where' : 'token in', facts.where],
    ['verified', facts.server === null ? undefined : facts.verified ? 'by the server, now' : 'no (use --verify)'],
  ]
}
