import { integer } from '@oclif/core/flags'
import { lists } from '../cli/command/base.ts'
import { StoreCommand, storeFlags } from '../cli/session/admin.ts'

export class AuditList extends StoreCommand {
  static override summary = 'Show the audit log, newest entry first'
  static override description =
    'Lists sign-ins and changes of roles, users and keys: who made them, from where, and the reason.'
  static override answers = { '': lists(async () => (await import('../cli/accounts/lists.ts')).audit) }
  static override examples = [
    '<%= config.bin %> audit list',
    '<%= config.bin %> audit list --limit 200 --before 1041',
    '<%= config.bin %> audit list --json',
  ]
  static override flags = {
    limit: integer({ char: 'n', description: 'Maximum number of entries', default: 50, min: 1, max: 1_000 }),
    before: integer({ description: 'Only entries with a smaller id, for the next page', min: 1 }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(AuditList)
    await this.inStore(flags, signal, async ({ admin }) => {
      const entries = await admin.audit.list({ limit: flags.limit, before: flags.before })
      const { audit } = await import('../cli/accounts/lists.ts')
      this.printList(audit.render(entries, { store: admin.store }, this.output))
      const oldest = entries.at(-1)
      if (flags.json || !this.io.stdout.isTTY || !oldest || entries.length < flags.limit || oldest.id <= 1) return
      const { repeatTargetFlags } = await import('../cli/render/hints.ts')
      this.say(`\n  ${repeatTargetFlags(`Older entries:   svc audit list --before ${oldest.id}`, this.argv)}`)
    })
  }
}
