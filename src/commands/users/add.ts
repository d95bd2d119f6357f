import { prints } from '../../cli/command/base.ts'
import { boolean, required, requiredArgument, text } from '../../cli/command/flags.ts'
import { canAsk, newPassword } from '../../cli/command/prompt.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { newNameFlag } from '../../cli/roles/new-names.ts'
import {
  digestConsent,
  hasStoreFile,
  inUserWords,
  refuseProblems,
  StoreCommand,
  storeFlags,
} from '../../cli/session/admin.ts'
import { Fault } from '../../core/errors.ts'
import { adminWarning, passwordRule } from '../../core/names.ts'
import type { Admin, NewUser, UserFacts } from '../../core/service.ts'

export default class Add extends StoreCommand {
  static override summary = 'Add a user to the store of this machine'
  static override description =
    `Creates the store if it does not exist. svc prompts for the password on a terminal, or reads it
from standard input with --password-stdin; it is never part of the command line.`
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = [
    '<%= config.bin %> users add alice --role Admin',
    '<%= config.bin %> users add bob --role Ops --password-stdin < password.txt',
    '<%= config.bin %> users add deploy --no-password --role Deploy',
  ]
  static override args = { name: requiredArgument({ name: 'NAME', description: 'User name', ignoreStdin: true }) }
  static override flags = {
    role: newNameFlag('role', 'Initial role; repeatable'),
    permission: newNameFlag('permission', 'Initial permission; repeatable'),
    email: text('email')({ description: 'E-mail address; also valid for sign-in' }),
    'display-name': text('display-name')({ description: 'Display name' }),
    'password-stdin': boolean({ description: 'Read the password from standard input', exclusive: ['no-password'] }),
    digest: boolean({
      description: 'Also allow sign-in by HTTP Digest, where svc.yaml turns it on: stores a second secret',
      exclusive: ['no-password'],
    }),
    'digest-for-admin': boolean({
      description: 'Like --digest, also for a user with the role Admin',
      exclusive: ['no-password'],
    }),
    'no-password': boolean({ description: 'No password: the user signs in only with keys (svc keys create)' }),
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Add)
    const userName = required(args.name, 'NAME')
    await this.sayStore(flags)
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
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const values = {
        userName,
        email: flags.email,
        displayName: flags['display-name'],
        roles: flags.role ?? [],
        permissions: flags.permission ?? [],
      }
      if (prompts) await this.refuseBeforePrompt(flags, admin, values)
      const refusal = async (password: string) => inUserWords(await admin.users.problems({ ...values, password }))
      const password = prompts && piped === undefined ? await newPassword({ ...ask, refusal }, this.io, signal) : piped
      const input = { ...values, password, digest: digestConsent(flags) }
      const user = await admin.users.add(input, by).catch(async (error: unknown) => {
        throw error instanceof Fault && error.fault === 'Conflict' ? ((await taken(admin, input)) ?? error) : error
      })
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(
        renderUser(user, admin.store, {
          ...this.output,
          sentence: `${user.userName} is added`,
        }),
      )
      if (!flags.json && user.roles.some((role) => role !== 'Admin' && role.toLowerCase() === 'admin')) {
        this.say('Note: the administrator role is Admin; role names are case-sensitive.')
      }
      const lookalikes = adminWarning(user.roles.filter((role) => role.toLowerCase() !== 'admin'))
      if (lookalikes !== undefined) this.say(`Warning: ${lookalikes}.`)
    })
  }

  /** Nobody types a password for values that are refused, or for a store that cannot be used. */
  private async refuseBeforePrompt(flags: { readonly store?: string | undefined }, admin: Admin, values: NewUser) {
    refuseProblems(await admin.users.problems(values))
    // Only the first user makes the store.
    if (!(await hasStoreFile(flags, this.io.env))) return
    const fault = await taken(admin, values)
    if (fault) throw fault
  }
}

/** Names the user who has the name or e-mail address: both share one namespace, without letter case (O4). */
async function taken(admin: Admin, { userName, email }: NewUser): Promise<Fault | undefined> {
  for (const value of [userName, email]) {
    const owner = value === undefined ? undefined : await orNobody(admin.users.show(value))
    if (!owner) continue
    return new Fault('Conflict', `"${value}" is already used by ${owner.userName}`, {
      hints: [`svc users show ${shellWord(owner.userName)}`],
    })
  }
  return undefined
}

async function orNobody(user: Promise<UserFacts>): Promise<UserFacts | undefined> {
  try {
    return await user
  } catch (error) {
    if (error instanceof Fault && error.fault === 'NotFound') return undefined
    throw error
  }
}
