import { StoreCommand, storeFlags, userNamed } from '../../cli/admin.ts'
import { boolean, required, requiredArgument, text } from '../../cli/flags.ts'
import { canAsk, newPassword } from '../../cli/prompt.ts'

export default class Passwd extends StoreCommand {
  static override summary = "Set a user's password and end the user's sessions and tokens"
  static override examples = [
    '<%= config.bin %> users passwd alice',
    '<%= config.bin %> users passwd alice --password-stdin < password.txt',
  ]
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = {
    'password-stdin': boolean({ description: 'Read the password from standard input' }),
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Passwd)
    const name = required(args.name, 'NAME')
    const stdin = flags['password-stdin']
    await this.sayStore(flags)
    // Without a terminal, report the missing flag before the store is opened.
    const piped = stdin || !canAsk() ? await newPassword({ message: '', stdin }, signal) : undefined
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const { userName } = await userNamed(admin, name)
      const password = piped ?? (await newPassword({ message: `New password for ${userName}:`, stdin }, signal))
      const user = await admin.users.passwd(userName, password, by)
      const sentence = `${user.userName} has a new password; earlier sessions and tokens are revoked`
      const { renderUser } = await import('../../cli/render/details.ts')
      this.print(renderUser(user, admin.store, { json: flags.json, screen: process.stdout, sentence }))
    })
  }
}
