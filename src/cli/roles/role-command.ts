import { Fault } from '../../core/base/errors.ts'
import { lists, prints } from '../command/base.ts'
import { boolean, connectionFlags, optionalArgument, reasonFlag, repeatable, text } from '../command/flags.ts'
import { type CommandSession, localCall, type SessionFlags } from '../session/session.ts'
import { TargetCommand } from '../session/target-command.ts'
import type { Asking, Lists, RoleChange, RoleChanged } from './role-change.ts'

/** The flags common to assigning and unassigning. */
export const roleFlags = {
  role: text('role')({ description: 'Role (case-sensitive); repeatable', ...repeatable }),
  permission: text('permission')({ description: 'Permission (case-sensitive); repeatable', ...repeatable }),
  reason: reasonFlag,
  'dry-run': boolean({ description: 'Show the changes without making them' }),
  'from-file': text('from-file')({
    description: 'Changes from a CSV or JSON file: UserName, Action (assign or unassign), Roles, Permissions, Expires',
    helpValue: '<x.csv|x.json>',
  }),
  ...connectionFlags,
} as const

type AskingFlags = SessionFlags & {
  readonly reason?: string | undefined
  readonly 'dry-run'?: boolean | undefined
}
export type RoleFlags = SessionFlags & {
  readonly role?: readonly string[] | undefined
  readonly permission?: readonly string[] | undefined
  readonly reason?: string | undefined
  readonly 'dry-run': boolean
  readonly 'from-file'?: string | undefined
  readonly json: boolean
  readonly quiet: boolean
}

export const listsOf = (flags: Pick<RoleFlags, 'role' | 'permission'>): Lists => ({
  roles: flags.role ?? [],
  permissions: flags.permission ?? [],
})

/** The user name, which is required unless a file contains the users. */
export function userOf(user: string | undefined): string {
  if (user !== undefined && user.trim() !== '') return user
  throw new Fault('Usage', user === undefined ? 'USER is missing' : 'USER is empty', {
    hints: ['USER is a user name or an e-mail address.'],
  })
}

/** Refuses a user and lists together with `--from-file`, which already contains them. */
export function refuseBoth(flags: RoleFlags, user: string | undefined): void {
  const lists =
    user !== undefined ? `USER ${user}` : flags.role ? '--role' : flags.permission ? '--permission' : undefined
  if (lists === undefined) return
  throw new Fault('Usage', `--from-file and ${lists} cannot be combined`, { hints: ['Omit one of them.'] })
}

/** A command that changes roles and permissions of one user. */
export abstract class OneRoleCommand extends TargetCommand {
  static override answers: (typeof TargetCommand)['answers'] = {
    '': prints(async () => (await import('./lists.ts')).roleChanges),
  }

  /** Makes one change and reports it. */
  protected async one(
    flags: AskingFlags,
    make: (asking: Asking) => Promise<RoleChanged>,
    signal: AbortSignal,
  ): Promise<undefined> {
    await this.inSession(flags, async (session, target) => {
      const changed = await make(asking(session, flags, signal))
      const { renderChange } = await import('./lists.ts')
      this.printList(renderChange(changed, target, this.output, this.io.clock.now()))
      for (const note of changed.notes) this.say(`Note: ${note}`)
    })
  }
}

/** A command that changes roles and permissions of one user, or those of a file. */
export abstract class RoleCommand extends OneRoleCommand {
  static override answers: (typeof TargetCommand)['answers'] = {
    ...OneRoleCommand.answers,
    '--from-file': lists(async () => (await import('./lists.ts')).fileRows),
  }
  static override args = { user: optionalArgument('USER', 'User name or e-mail') }

  /** Makes and reports every change in a file. The file is read and validated before a session is opened. */
  protected async file(
    flags: RoleFlags & { readonly 'from-file': string },
    action: RoleChange['action'],
    signal: AbortSignal,
  ): Promise<number> {
    const { readRoleFile } = await import('./role-file.ts')
    const changes = await readRoleFile(flags['from-file'], action, signal)
    return await this.inSession(flags, async (session, target) => {
      const { applyFile, fileExit } = await import('./role-file-run.ts')
      const { progress } = await import('../io/terminal.ts')
      const status = progress(`Changing ${changes.length} users at ${session.label}`, !flags.quiet, this.io)
      const outcomes = await applyFile(asking(session, flags, signal), changes, (done) =>
        status.update(`Row ${done} of ${changes.length}`),
      ).finally(() => status.stop())
      const { fileRows } = await import('./lists.ts')
      this.printList(fileRows.render(outcomes, { Target: target }, this.output))
      if (!flags.json) {
        for (const { change, done } of outcomes) {
          for (const note of done?.notes ?? []) this.say(`Note: row ${change.row}: ${note}`)
        }
      }
      return fileExit(outcomes)
    })
  }
}

const asking = (session: CommandSession, flags: AskingFlags, signal: AbortSignal): Asking => ({
  session,
  call: localCall(signal),
  dryRun: flags['dry-run'] === true,
  reason: flags.reason,
})
