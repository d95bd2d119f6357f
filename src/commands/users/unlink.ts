import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument } from '../../cli/command/flags.ts'
import { StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'
import { identityFlags, issuerNamed } from '../../cli/session/identity-flags.ts'

export default class Unlink extends StoreCommand {
  static override summary = 'No longer let a user sign in at an OpenID provider'
  static override description =
    `Ends every session and token of the user. Without --subject, all accounts of the user at the provider are unlinked.
The next sign-in with such an account adds a new user without roles: to prevent it, svc users disable NAME.`
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = ['<%= config.bin %> users unlink alice --provider corp']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = { ...identityFlags, ...storeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Unlink)
    const name = required(args.name, 'NAME')
    const issuer = await issuerNamed(flags, this.io.env)
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const user = await userNamed(admin, name)
      const changed = (await admin.users.unlink(user.userName, { issuer, subject: flags.subject }, by)) > 0
      const sentence = changed
        ? `${user.userName} can no longer sign in at ${issuer}`
        : `${user.userName}: unchanged, there is no such link`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, { ...this.output, sentence, changed }))
    })
  }
}
