import { prints } from '../../cli/command/base.ts'
import { boolean, required, requiredArgument, text } from '../../cli/command/flags.ts'
import { newPassword } from '../../cli/command/prompt.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { newNameFlag } from '../../cli/roles/new-names.ts'
import { digestConsent, StoreCommand, storeFlags } from '../../cli/session/admin.ts'
import { Fault } from '../../core/errors.ts'
import { adminWarning } from '../../core/names.ts'
import type { Admin, NewUser } from '../../core/service.ts'

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
    const password = flags['no-password']
      ? undefined
      : await newPassword(
          {
            message: `Password for ${userName}:`,
            stdin: flags['password-stdin'],
            otherwise: ['To create a user without a password, for keys only: --no-password'],
          },
          this.io,
          signal,
        )
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const input = {
        userName,
        password,
        digest: digestConsent(flags),
        email: flags.email,
        displayName: flags['display-name'],
        roles: flags.role ?? [],
        permissions: flags.permission ?? [],
      }
      const user = await admin.users.add(input, by).catch(async (error: unknown) => {
        throw error instanceof Fault && error.fault === 'Conflict' ? await taken(error, admin, input) : error
      })
      const { renderUser } = await import('../../cli/accounts/details.ts')
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
}

/** Names the user who has the name or e-mail address: both share one namespace, without letter case (O4). */
async function taken(error: Fault, admin: Admin, input: NewUser): Promise<Fault> {
  for (const value of [input.userName, input.email]) {
    const owner = value === undefined ? undefined : await admin.users.show(value).catch(() => undefined)
    if (!owner) continue
    return new Fault('Conflict', `"${value}" is already used by ${owner.userName}`, {
      fields: error.details.fields,
      hints: [`svc users show ${shellWord(owner.userName)}`],
    })
  }
  return error
}
