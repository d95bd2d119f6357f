import { prints } from '../../cli/command/base.ts'
import { boolean, required, requiredArgument, text } from '../../cli/command/flags.ts'
import { askLine, canAsk } from '../../cli/command/prompt.ts'
import type { Io } from '../../cli/io/io.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { note } from '../../cli/render/note.ts'
import { StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'
import { Fault } from '../../core/errors.ts'

export default class Remove extends StoreCommand {
  static override summary = 'Permanently remove a user with all sessions, tokens and keys'
  static override description =
    `Asks to repeat the name on a terminal; elsewhere --yes is required. To keep the user and only
prevent sign-in: svc users disable NAME.`
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = ['<%= config.bin %> users remove bob', '<%= config.bin %> users remove bob --yes']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = {
    yes: boolean({ char: 'y', description: 'Do not ask for confirmation' }),
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Remove)
    const name = required(args.name, 'NAME')
    if (!flags.yes && !canAsk(this.io)) {
      throw new Fault('Usage', '--yes is missing: there is no terminal to ask for confirmation', {
        hints: [`svc users remove ${shellWord(name)} --yes`],
      })
    }
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const { userName } = await userNamed(admin, name)
      if (!flags.yes) await confirm(userName, admin.store, this.io, signal)
      const user = await admin.users.remove(userName, by)
      const sentence = `${user.userName} is removed`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, { ...this.output, sentence, removed: true }))
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
