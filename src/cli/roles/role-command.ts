import { Fault } from '../../core/errors.ts'
import { boolean, connectionFlags, text } from '../command/flags.ts'
import { type CommandSession, localCall, openSession, placeOf, type SessionFlags } from '../session/session.ts'
import { TargetCommand } from '../session/target-command.ts'
import type { Asking, Lists, RoleChange, RoleChanged } from './role-change.ts'

const repeatable = { multiple: true, multipleNonGreedy: true } as const

/** The flags common to assigning and unassigning. */
export const roleFlags = {
  role: text('role')({ description: 'Role (case-sensitive); repeatable', ...repeatable }),
  permission: text('permission')({ description: 'Permission (case-sensitive); repeatable', ...repeatable }),
  reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
  'dry-run': boolean({ description: 'Show the changes without making them' }),
  'from-file': text('from-file')({
    description: 'Changes from a CSV or JSON file: UserName, Action (assign or unassign), Roles, Permissions',
    helpValue: '<x.csv|x.json>',
  }),
  ...connectionFlags,
} as const

export type RoleFlags = SessionFlags & {
  readonly role?: readonly string[] | undefined
  readonly permission?: readonly string[] | undefined
  readonly reason?: string | undefined
  readonly 'dry-run': boolean
  readonly 'from-file'?: string | undefined
  readonly json: boolean
  readonly quiet: boolean
}

export const listsOf = (flags: RoleFlags): Lists => ({ roles: flags.role ?? [], permissions: flags.permission ?? [] })

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

/** A command that changes roles and permissions of users. */
export abstract class RoleCommand extends TargetCommand {
  /** Makes one change and reports it. */
  protected async one(
    flags: RoleFlags,
    make: (asking: Asking) => Promise<RoleChanged>,
    signal: AbortSignal,
  ): Promise<undefined> {
    const session = await openSession(flags, this.io, { say: (line) => this.say(line) })
    this.target = placeOf(session)
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      const changed = await make(asking(session, flags, signal))
      const { renderChange } = await import('./lists.ts')
      this.print(renderChange(changed, this.target, this.output))
      for (const note of changed.notes) this.say(`Note: ${note}`)
    } finally {
      await session.close()
    }
  }

  /** Makes and reports every change in a file. The file is read and validated before a session is opened. */
  protected async file(
    flags: RoleFlags & { readonly 'from-file': string },
    action: RoleChange['action'],
    signal: AbortSignal,
  ): Promise<number> {
    const { readRoleFile } = await import('./role-file.ts')
    const changes = await readRoleFile(flags['from-file'], action, signal)
    const session = await openSession(flags, this.io, { say: (line) => this.say(line) })
    this.target = placeOf(session)
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      const { applyFile, fileExit } = await import('./role-file-run.ts')
      const { progress } = await import('../io/terminal.ts')
      const status = progress(`Changing ${changes.length} users at ${session.label}`, !flags.quiet, this.io)
      const outcomes = await applyFile(asking(session, flags, signal), changes, (done) =>
        status.update(`Row ${done} of ${changes.length}`),
      ).finally(() => status.stop())
      const { fileRows } = await import('./lists.ts')
      this.print(fileRows.render(outcomes, { Target: this.target }, this.output))
      if (!flags.json) {
        for (const { change, done } of outcomes) {
          for (const note of done?.notes ?? []) this.say(`Note: row ${change.row}: ${note}`)
        }
      }
      return fileExit(outcomes)
    } finally {
      await session.close()
    }
  }
}

const asking = (session: CommandSession, flags: RoleFlags, signal: AbortSignal): Asking => ({
  session,
  call: localCall(signal),
  dryRun: flags['dry-run'],
  reason: flags.reason,
})
