import { lists, prints } from '../cli/command/base.ts'
import { boolean, connectionFlags, required, requiredArgument, text } from '../cli/command/flags.ts'
import { askLine, canAsk, newPassword } from '../cli/command/prompt.ts'
import type { Io } from '../cli/io/io.ts'
import { machine } from '../cli/io/process.ts'
import { shellWord } from '../cli/render/hints.ts'
import { note } from '../cli/render/note.ts'
import { newNameFlag } from '../cli/roles/new-names.ts'
import {
  AdminCommand,
  type AdminSession,
  changeFlags,
  hasStoreFile,
  inUserWords,
  loadAccountRules,
  orUnknown,
  refuseProblems,
  userFactsOf,
  userNamed,
} from '../cli/session/admin.ts'
import { identityFlags, providerFor } from '../cli/session/identity-flags.ts'
import type { SessionFlags } from '../cli/session/session.ts'
import type { CommandTarget } from '../cli/settings/target.ts'
import { Fault } from '../core/base/errors.ts'
import { adminWarning, passwordRule } from '../core/base/names.ts'
import type { Request, UserEntry } from '../core/protocol/index.ts'
import type { UserFacts } from '../core/protocol/service/service.ts'

const load = () => import('../cli/accounts/lists.ts')

/** A user after a command, and the sentence that says what it did. */
type Outcome = {
  readonly user: UserFacts
  readonly sentence?: string
  /** Absent where the command does not decide it. */
  readonly changed?: boolean
  readonly removed?: true
}

type ChangeFlags = SessionFlags & { readonly reason?: string | undefined }

/** The answer of an operation about one user. */
type UserAnswer = { readonly User?: UserEntry | undefined; readonly Changed?: boolean | undefined }

/** A command that acts on one user, and prints that user. */
abstract class UserCommand extends AdminCommand {
  static override answers = { '': prints(async () => (await load()).userOutcomes) }
  static override args = { name: requiredArgument('NAME', 'User name or e-mail') }
  static override flags = changeFlags

  /**
   * Does the work on the user of this name, and says what it did, or that nothing changed. Throws Fault `NotFound` with the
   * nearest name.
   */
  protected async onUser(
    name: string | undefined,
    flags: ChangeFlags,
    signal: AbortSignal,
    work: (
      on: { readonly UserName: string; readonly Reason: string | undefined },
      admin: AdminSession,
    ) => Promise<UserAnswer>,
    sentence: (user: UserFacts) => string,
    unchanged = (user: UserFacts): string => `${user.userName}: unchanged`,
  ): Promise<undefined> {
    const UserName = required(name, 'NAME')
    await this.administer(flags, signal, async (admin) => {
      const { User, Changed: changed } = await orUnknown(
        admin,
        UserName,
        work({ UserName, Reason: flags.reason }, admin),
      )
      const user = userFactsOf(User)
      const did = changed === false ? unchanged(user) : sentence(user)
      await this.printUser({ user, sentence: did, ...(changed === undefined ? {} : { changed }) }, admin)
    })
  }

  protected async printUser({ user, ...outcome }: Outcome, { store }: AdminSession): Promise<void> {
    const { renderUser } = await load()
    this.printList(renderUser(user, store, { ...this.output, ...outcome }))
  }
}

const mustChangeFlags = {
  'must-change': boolean({
    description: 'The user must change the password before anything else; default if you type it for another user',
    exclusive: ['no-password', 'no-digest'],
  }),
  'no-must-change': boolean({ description: 'The user may keep the password', exclusive: ['must-change'] }),
} as const

/** Whether a password is for the time until its user changes it: always, never, or if somebody else has typed it. */
const mustChange = (
  flags: { readonly 'must-change'?: boolean | undefined; readonly 'no-must-change'?: boolean | undefined },
  isTyped: boolean,
  { target, userName }: { readonly target: CommandTarget; readonly userName: string },
): boolean => {
  const own = target.kind === 'server' ? target.profile?.user : machine.accountName()
  return flags['must-change'] === true || (isTyped && !flags['no-must-change'] && own !== userName)
}

const newDigest = 'Also allow sign-in by HTTP Digest, if svc.yaml enables it; stores a second secret'

export class UsersAdd extends UserCommand {
  static override summary = 'Add a user'
  static override description =
    `On this machine, creates the store if it does not exist. svc prompts for the password on a terminal, or reads it
from standard input with --password-stdin; it is never part of the command line.`
  static override examples = [
    '<%= config.bin %> users add alice --role Admin',
    '<%= config.bin %> users add bob --role Ops --password-stdin < password.txt',
    '<%= config.bin %> users add deploy --no-password --role Deploy',
  ]
  static override args = { name: requiredArgument('NAME', 'User name') }
  static override flags = {
    role: newNameFlag('role', 'Initial role; repeatable'),
    permission: newNameFlag('permission', 'Initial permission; repeatable'),
    email: text('email')({ description: 'E-mail address; also valid for sign-in' }),
    'display-name': text('display-name')({ description: 'Display name' }),
    'password-stdin': boolean({ description: 'Read the password from standard input', exclusive: ['no-password'] }),
    digest: boolean({ description: newDigest, exclusive: ['no-password'] }),
    'digest-for-admin': boolean({
      description: 'Like --digest, also for a user with the role Admin',
      exclusive: ['no-password'],
    }),
    'no-password': boolean({ description: 'No password: the user signs in only with keys (svc keys create)' }),
    ...mustChangeFlags,
    ...changeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersAdd)
    const userName = required(args.name, 'NAME')
    const target = await this.sayTarget(flags)
    const stdin = flags['password-stdin']
    const ask = {
      message: `Password for ${userName}:`,
      rule: passwordRule,
      stdin,
      otherwise: ['To create a user without a password, for keys only: --no-password'],
    }
    const prompts = !flags['no-password'] && !stdin
    // Without a terminal, report the missing flag before the store is opened.
    const piped = stdin || (prompts && !canAsk(this.io)) ? await newPassword(ask, this.io, signal) : undefined
    await this.administer(flags, signal, async (admin) => {
      const { service, call } = admin
      const { email, 'display-name': displayName, role: roles = [], permission: permissions = [] } = flags
      const { newUserProblems: problems } = await loadAccountRules()
      const values = {
        UserName: userName,
        Email: email,
        DisplayName: displayName,
        Roles: roles,
        Permissions: permissions,
      }
      // Only the first user makes the store.
      const exists = target.kind === 'server' || (await hasStoreFile(flags, this.io.env))
      if (prompts) {
        // Nobody types a password for values that are refused, or for a store that cannot be used.
        refuseProblems(await problems(values))
        const fault = exists ? await taken(admin, values) : undefined
        if (fault) throw fault
      }
      const refusal = async (Password: string) => inUserWords(await problems({ ...values, Password }))
      const password = prompts && piped === undefined ? await newPassword({ ...ask, refusal }, this.io, signal) : piped
      const input: Request<'addUser'> = {
        ...values,
        Password: password,
        ...digestFlags(flags),
        // Who makes the store is its first Admin.
        MustChangePassword: mustChange(flags, prompts && piped === undefined && exists, { target, userName }),
        Reason: flags.reason,
      }
      const { User } = await service.addUser(input, call).catch(async (error: unknown) => {
        throw error instanceof Fault && error.fault === 'Conflict' ? ((await taken(admin, values)) ?? error) : error
      })
      const user = userFactsOf(User)
      await this.printUser({ user, sentence: `${user.userName} is added` }, admin)
      if (!flags.json && user.roles.some((role) => role !== 'Admin' && role.toLowerCase() === 'admin')) {
        this.say('Note: the administrator role is Admin; role names are case-sensitive.')
      }
      const lookalikes = adminWarning(user.roles.filter((role) => role.toLowerCase() !== 'admin'))
      if (lookalikes !== undefined) this.say(`Warning: ${lookalikes}.`)
    })
  }
}

/** The wish of the flags for a digest secret (A12). */
const digestFlags = (flags: {
  readonly digest?: boolean | undefined
  readonly 'digest-for-admin'?: boolean | undefined
}) => ({
  Digest: flags.digest || undefined,
  DigestForAdmin: flags['digest-for-admin'] || undefined,
})

/** Names the user who has the name or e-mail address: both share one namespace, without letter case (O4). */
async function taken(
  { service, call }: AdminSession,
  { UserName, Email }: Pick<Request<'addUser'>, 'UserName' | 'Email'>,
): Promise<Fault | undefined> {
  for (const value of [UserName, Email]) {
    const owner = value === undefined ? undefined : await orNobody(service.getUser({ UserName: value }, call))
    if (!owner?.User) continue
    const { UserName: name = '' } = owner.User
    return new Fault('Conflict', `"${value}" is already used by ${name}`, {
      hints: [`svc users show ${shellWord(name)}`],
    })
  }
  return undefined
}

async function orNobody<R>(answer: Promise<R>): Promise<R | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Fault && error.fault === 'NotFound') return undefined
    throw error
  }
}

export class UsersDisable extends UserCommand {
  static override summary = 'Disable a user; takes effect immediately'
  static override examples = ['<%= config.bin %> users disable bob --reason "on leave"']

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersDisable)
    const sentence = (user: UserFacts) =>
      `${user.userName} is disabled: sign-in, sessions, tokens and keys no longer work`
    await this.onUser(args.name, flags, signal, (on, { service, call }) => service.disableUser(on, call), sentence)
  }
}

export class UsersEnable extends UserCommand {
  static override summary = 'Enable a disabled user'
  static override examples = ['<%= config.bin %> users enable bob --reason "on leave"']

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersEnable)
    const sentence = (user: UserFacts) => `${user.userName} is enabled`
    await this.onUser(args.name, flags, signal, (on, { service, call }) => service.enableUser(on, call), sentence)
  }
}

export class UsersLink extends UserCommand {
  static override summary = 'Allow a user to sign in at an OpenID provider'
  static override description =
    `svc never links an account at a provider to a user by name or e-mail; this command creates the link. The
subject is the claim sub of the account's tokens; svc audit list --json shows it after the first sign-in.`
  static override examples = [
    '<%= config.bin %> users link alice --provider corp --subject 248289761001',
    '<%= config.bin %> users link alice --provider https://login.example.com --subject 2482',
  ]
  static override flags = { ...identityFlags, ...changeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersLink)
    const name = required(args.name, 'NAME')
    const subject = required(flags.subject, '--subject')
    const provider = await providerFor(flags, await this.sayTarget(flags), this.io.env)
    await this.onUser(
      name,
      flags,
      signal,
      (on, { service, call }) => service.linkUser({ ...on, Provider: provider, Subject: subject }, call),
      (user) => `${user.userName} may sign in as ${subject} at ${provider}`,
    )
  }
}

export class UsersList extends AdminCommand {
  static override summary = 'List the users'
  static override answers = { '': lists(async () => (await load()).users) }
  static override examples = ['<%= config.bin %> users list', '<%= config.bin %> users list --json']
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(UsersList)
    await this.administer(flags, signal, async ({ service, call, store }) => {
      const { userPages, users } = await load()
      const { Total: total = 0, Users: first } = await service.getUsers({}, call)
      const page = async (after?: string) =>
        ((after === undefined ? first : (await service.getUsers({ After: after }, call)).Users) ?? []).map(userFactsOf)
      await this.printParts(users.parts(userPages(page), { store }, { ...this.output, total }), signal)
    })
  }
}

export class UsersPasswd extends UserCommand {
  static override summary = "Set a user's password and end the user's sessions and tokens"
  static override description =
    `A new password also ends sign-in by HTTP Digest, unless --digest is given: the digest secret is
computed from the password. --no-digest removes only that secret, keeps the password and prompts for nothing.`
  static override examples = [
    '<%= config.bin %> users passwd alice',
    '<%= config.bin %> users passwd alice --password-stdin < password.txt',
    '<%= config.bin %> users passwd alice --digest',
    '<%= config.bin %> users passwd alice --no-digest',
  ]
  static override flags = {
    'password-stdin': boolean({ description: 'Read the password from standard input' }),
    digest: boolean({ description: newDigest }),
    'digest-for-admin': boolean({ description: 'Like --digest, also while the user has the role Admin' }),
    'no-digest': boolean({
      description: 'Remove the digest secret and keep the password',
      exclusive: ['digest', 'digest-for-admin', 'password-stdin'],
    }),
    ...mustChangeFlags,
    ...changeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersPasswd)
    const name = required(args.name, 'NAME')
    const stdin = flags['password-stdin']
    const target = await this.sayTarget(flags)
    if (flags['no-digest']) {
      return await this.onUser(
        name,
        flags,
        signal,
        (on, { service, call }) => service.removeDigest(on, call),
        ({ userName }) => `${userName} can no longer sign in by HTTP Digest; the password is unchanged`,
        ({ userName }) => `${userName} has no digest secret: nothing changed`,
      )
    }
    // Without a terminal, report the missing flag before the store is opened.
    const piped = stdin || !canAsk(this.io) ? await newPassword({ message: '', stdin }, this.io, signal) : undefined
    await this.administer(flags, signal, async (admin) => {
      const { digest: before, ...owner } = await userNamed(admin, name)
      const { userName } = owner
      const { passwordProblems } = await loadAccountRules()
      const refusal = async (typed: string) => inUserWords(await passwordProblems('Password', typed, owner))
      const ask = { message: `New password for ${userName}:`, rule: passwordRule, stdin, refusal }
      const password = piped ?? (await newPassword(ask, this.io, signal))
      const MustChangePassword = mustChange(flags, piped === undefined, { target, userName })
      const set = {
        UserName: userName,
        Password: password,
        MustChangePassword,
        ...digestFlags(flags),
        Reason: flags.reason,
      }
      const user = userFactsOf((await admin.service.setPassword(set, admin.call)).User)
      const sentence = `${user.userName} has a new password; earlier sessions and tokens are revoked`
      await this.printUser({ user, sentence }, admin)
      if (before !== 'none' && user.digest === 'none') {
        this.say(`Note: ${user.userName} can no longer sign in by HTTP Digest; --digest keeps that.`)
      }
    })
  }
}

export class UsersRemove extends UserCommand {
  static override summary = 'Permanently remove a user with all sessions, tokens and keys'
  static override description =
    `On a terminal, svc asks you to repeat the name; elsewhere, --yes is required. To prevent sign-in without
removing the user, use svc users disable.`
  static override examples = ['<%= config.bin %> users remove bob', '<%= config.bin %> users remove bob --yes']
  static override flags = { yes: boolean({ char: 'y', description: 'Do not ask for confirmation' }), ...changeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersRemove)
    const name = required(args.name, 'NAME')
    if (!flags.yes && !canAsk(this.io)) {
      throw new Fault('Usage', '--yes is missing: there is no terminal to ask for confirmation', {
        hints: [`svc users remove ${shellWord(name)} --yes`],
      })
    }
    await this.administer(flags, signal, async (admin) => {
      const { userName } = await userNamed(admin, name)
      if (!flags.yes) await confirm(userName, admin.store, this.io, signal)
      const { User } = await admin.service.removeUser({ UserName: userName, Reason: flags.reason }, admin.call)
      await this.printUser({ user: userFactsOf(User), sentence: `${userName} is removed`, removed: true }, admin)
    })
  }
}

async function confirm(userName: string, store: string, io: Io, signal: AbortSignal): Promise<void> {
  io.stderr.write(note(`This permanently removes ${userName} from ${store}.`, io.stderr))
  if ((await askLine(`Type ${userName} to confirm:`, io, signal)) === userName) return
  throw new Fault('Usage', 'the name does not match: nothing was removed', {
    hints: ['To only stop sign-in: svc users disable NAME'],
  })
}

export class UsersShow extends AdminCommand {
  static override summary = 'Show one user'
  static override answers = { '': prints(async () => (await load()).users) }
  static override examples = ['<%= config.bin %> users show alice', '<%= config.bin %> users show alice@example.com']
  static override args = UserCommand.args
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersShow)
    const name = required(args.name, 'NAME')
    await this.administer(flags, signal, async (admin) => {
      const user = await userNamed(admin, name)
      const { renderUser } = await load()
      this.printList(renderUser(user, admin.store, this.output))
    })
  }
}

export class UsersUnlink extends UserCommand {
  static override summary = 'Stop a user from signing in at an OpenID provider'
  static override description =
    `Ends every session and token of the user. Without --subject, svc unlinks all accounts of the user at the provider.
The next sign-in with such an account creates a new user without roles; to prevent this, use svc users disable.`
  static override examples = ['<%= config.bin %> users unlink alice --provider corp']
  static override flags = { ...identityFlags, ...changeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersUnlink)
    const name = required(args.name, 'NAME')
    const provider = await providerFor(flags, await this.sayTarget(flags), this.io.env)
    await this.onUser(
      name,
      flags,
      signal,
      (on, { service, call }) => service.unlinkUser({ ...on, Provider: provider, Subject: flags.subject }, call),
      ({ userName }) => `${userName} can no longer sign in at ${provider}`,
      ({ userName }) => `${userName}: unchanged, there is no such link`,
    )
  }
}

export class UsersUnlock extends UserCommand {
  static override summary = 'End the locks and limits after failed sign-ins'
  static override description =
    `Removes the counters of failed sign-ins with the user's name and e-mail, so that the right password works again from
every address. While somebody continues to guess, the limit is soon reached again: --from ADDRESS names the address from
which the user signs in, which the limit then no longer affects.`
  static override examples = [
    '<%= config.bin %> users unlock alice',
    '<%= config.bin %> users unlock alice --from 203.0.113.7 --reason "on call, at home"',
  ]
  static override flags = {
    from: text('from')({ description: 'IP address (IPv6: its /64) from which the user may sign in during an attack' }),
    ...changeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(UsersUnlock)
    const from = flags.from === undefined ? '' : `, and may sign in from ${flags.from} during an attack`
    await this.onUser(
      args.name,
      flags,
      signal,
      (on, { service, call }) => service.unlockUser({ ...on, From: flags.from }, call),
      ({ userName }) => `${userName} is no longer locked after failed sign-ins${from}`,
    )
  }
}
