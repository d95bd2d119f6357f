import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument, text } from '../../cli/command/flags.ts'
import { orNearest, StoreCommand, storeFlags } from '../../cli/session/admin.ts'

export default class Revoke extends StoreCommand {
  static override summary = 'Revoke a key; takes effect immediately'
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).revokedKeys) }
  static override examples = ['<%= config.bin %> keys revoke ci --reason "found in a log"']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'Name of the key', ignoreStdin: true }),
  }
  static override flags = {
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Revoke)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      await orNearest(admin.keys.revoke(name, by), name, {
        message: `there is no key "${name}"`,
        near: admin.keys.near,
        hint: () => 'svc keys list shows the keys.',
      })
      const sentence = `The key ${name} is revoked and no longer valid`
      const { renderDone } = await import('../../cli/render/done.ts')
      const { revokedKeys } = await import('../../cli/accounts/lists.ts')
      const document = (): string => revokedKeys.text({ store: admin.store }, [{ name, revoked: true }])
      this.print(renderDone(name, admin.store, { ...this.output, sentence, word: 'revoked', document }))
    })
  }
}
