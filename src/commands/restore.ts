import { resolve } from 'node:path'
import { lists } from '../cli/command/base.ts'
import { boolean, reasonFlag, required, requiredArgument } from '../cli/command/flags.ts'
import { StoreCommand, storeFlags } from '../cli/session/admin.ts'
import { localCall } from '../cli/session/session.ts'

export default class Restore extends StoreCommand {
  static override summary = 'Replace the store of this machine with a backup'
  static override description =
    `Stop svc serve first. svc keeps the previous store beside the new one. All sign-ins end. Users that were
removed or disabled after the backup are disabled, and keys that were revoked after it stay revoked,
unless you use --keep. Roles and permissions are those of the backup; svc lists the differences.`
  static override answers = { '': lists(async () => (await import('../cli/backups/lists.ts')).rolledBack) }
  static override examples = ['<%= config.bin %> restore /var/backups/svc.db']
  static override args = { file: requiredArgument('FILE', 'File written by svc backup') }
  static override flags = {
    keep: boolean({ description: 'Enable users and keys that were removed, disabled or revoked after the backup' }),
    reason: reasonFlag,
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Restore)
    const file = resolve(required(args.file, 'FILE'))
    const { refuseOtherStore } = await import('../cli/session/service-store.ts')
    const note = await refuseOtherStore(flags, this.io.env, this.argv)
    if (note !== undefined) this.say(note)
    const { path: store, label, loadRestore } = await this.storeFile(flags)
    const { caller, correlationId } = localCall(signal)
    const who = caller.kind === 'local' ? `local:${caller.account}` : '-'
    const actor = { who, correlationId, reason: flags.reason }
    const restore = await loadRestore()
    const now = new Date(this.io.clock.now())
    const restored = await restore({ store, file, keep: flags.keep === true, actor, now, signal })
    const { restoreNotes, rolledBack } = await import('../cli/backups/lists.ts')
    const { comparison, keptAs = null, sessions, unreadable = null, hasAdmin, foreign } = restored
    const changes = comparison?.changes ?? []
    const around = {
      store: label,
      file,
      keptAs,
      signInsEnded: sessions,
      auditEntriesLost: comparison?.auditEntries ?? null,
      isLater: comparison?.isLater ?? null,
      unreadable,
      hasAdmin,
      foreign,
    }
    const headline = { mark: 'ok', sentence: `The store is restored from ${file}` } as const
    this.printList(rolledBack.render(changes, around, { ...this.output, headline }))
    for (const note of restoreNotes(restored)) this.say(note)
  }
}
