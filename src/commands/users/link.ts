import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument } from '../../cli/command/flags.ts'
import { StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'
import { identityFlags, issuerNamed } from '../../cli/session/identity-flags.ts'

export default class Link extends StoreCommand {
  static override summary = 'Let a user sign in at an OpenID provider'
  static override description =
    `svc never takes an account at a provider for a user of the same name or e-mail: this command decides it. The
subject is the claim sub of the account's tokens; svc audit list --json shows it after the first sign-in.`
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = [
    '<%= config.bin %> users link alice --provider corp --subject 248289761001',
    '<%= config.bin %> users link alice --provider https://login.example.com --subject 2482',
  ]
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = { ...identityFlags, ...storeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Link)
    const name = required(args.name, 'NAME')
    const subject = required(flags.subject, '--subject')
    const issuer = await issuerNamed(flags, this.io.env)
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const user = await userNamed(admin, name)
      const changed = await admin.users.link(user.userName, { issuer, subject }, by)
      const sentence = changed
        ? `${user.userName} may sign in as ${subject} at ${issuer}`
        : `${user.userName}: unchanged`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, { ...this.output, sentence, changed }))
    })
  }
}
