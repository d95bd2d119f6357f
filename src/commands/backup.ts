import { resolve } from 'node:path'
import { lists } from '../cli/command/base.ts'
import { boolean, required, requiredArgument } from '../cli/command/flags.ts'
import { StoreCommand, storeFlags } from '../cli/session/admin.ts'

export default class BackUp extends StoreCommand {
  static override summary = 'Copy the store into a file, even while svc serve runs'
  static override description =
    `The backup is consistent: it contains the store as of one moment. svc verifies it before FILE appears,
and gives it mode 600, because it contains password hashes. For a store in PostgreSQL, use pg_dump.`
  static override answers = { '': lists(async () => (await import('../cli/backups/lists.ts')).backups) }
  static override examples = [
    '<%= config.bin %> backup /var/backups/svc.db --overwrite',
    '<%= config.bin %> backup svc-2026-11-23.db --json',
  ]
  static override args = { file: requiredArgument('FILE', 'File to write') }
  static override flags = {
    overwrite: boolean({ description: 'Replace FILE if it exists' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(BackUp)
    const file = resolve(required(args.file, 'FILE'))
    const { path: store, label, loadBackup } = await this.storeFile(flags)
    const backUp = await loadBackup()
    const backup = await backUp({ store, file, overwrite: flags.overwrite === true, signal })
    const { backupText } = await import('../cli/backups/lists.ts')
    this.printList(backupText(backup, label, this.output))
  }
}
