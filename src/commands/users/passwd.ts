import { prints } from '../../cli/command/base.ts'
import { boolean, required, requiredArgument, text } from '../../cli/command/flags.ts'
import { canAsk, newPassword } from '../../cli/command/prompt.ts'
import { digestConsent, inUserWords, StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'
import { passwordRule } from '../../core/names.ts'

export default class Passwd extends StoreCommand {
  static override summary = "Set a user's password and end the user's sessions and tokens"
  static override description =
    `A new password also ends sign-in by HTTP Digest, unless --digest is given: the digest secret is
computed from the password. --no-digest removes that secret alone; it keeps the password, and asks for none.`
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = [
    '<%= config.bin %> users passwd alice',
    '<%= config.bin %> users passwd alice --password-stdin < password.txt',
    '<%= config.bin %> users passwd alice --digest',
    '<%= config.bin %> users passwd alice --no-digest',
  ]
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = {
    'password-stdin': boolean({ description: 'Read the password from standard input' }),
    digest: boolean({
      description: 'Also allow sign-in by HTTP Digest, where svc.yaml turns it on: stores a second secret',
    }),
    'digest-for-admin': boolean({ description: 'Like --digest, also while the user has the role Admin' }),
    'no-digest': boolean({
      description: 'Only end sign-in by HTTP Digest: keep the password, remove the digest secret',
      exclusive: ['digest', 'digest-for-admin', 'password-stdin'],
    }),
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Passwd)
    const name = required(args.name, 'NAME')
    const stdin = flags['password-stdin']
    await this.sayStore(flags)
    if (flags['no-digest']) return await this.removeDigest(name, flags, signal)
    // Without a terminal, report the missing flag before the store is opened.
    const piped = stdin || !canAsk(this.io) ? await newPassword({ message: '', stdin }, this.io, signal) : undefined
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const { userName, digest: before } = await userNamed(admin, name)
      const password =
        piped ??
        (await newPassword(
          {
            message: `New password for ${userName}:`,
            rule: passwordRule,
            stdin,
            refusal: async (typed) => inUserWords(await admin.users.passwordProblems(userName, typed)),
          },
          this.io,
          signal,
        ))
      const user = await admin.users.passwd(userName, password, by, digestConsent(flags))
      const sentence = `${user.userName} has a new password; earlier sessions and tokens are revoked`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, { ...this.output, sentence }))
      if (before !== 'none' && user.digest === 'none') {
        this.say(`Note: ${user.userName} can no longer sign in by HTTP Digest; --digest keeps that.`)
      }
    })
  }

  private async removeDigest(
    name: string,
    flags: Parameters<StoreCommand['inStore']>[0] & { readonly json: boolean },
    signal: AbortSignal,
  ): Promise<undefined> {
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const { userName } = await userNamed(admin, name)
      const { user, removed } = await admin.users.removeDigest(userName, by)
      const sentence = removed
        ? `${user.userName} can no longer sign in by HTTP Digest; the password is unchanged`
        : `${user.userName} has no digest secret: nothing changed`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      const as = { ...this.output, sentence, changed: removed }
      this.print(renderUser(user, admin.store, as))
    })
  }
}
