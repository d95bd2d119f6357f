import { lists } from '../../cli/command/base.ts'
import { required, requiredArgument } from '../../cli/command/flags.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { StoreCommand, storeFlags } from '../../cli/session/admin.ts'
import { Fault } from '../../core/errors.ts'

export default class Holders extends StoreCommand {
  static override summary = 'List the users with a role in the store of this machine'
  static override answers = { '': lists(async () => (await import('../../cli/accounts/lists.ts')).holders) }
  static override examples = ['<%= config.bin %> roles holders Admin']
  static override args = {
    role: requiredArgument({ name: 'ROLE', description: 'Role (case-sensitive)', ignoreStdin: true }),
  }
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Holders)
    const role = required(args.role, 'ROLE')
    await this.inStore(flags, signal, async ({ admin }) => {
      const total = await admin.roles.count(role)
      if (total === 0) refuseOtherCase(role, await admin.roles.names())
      const [{ holders, holdersHeadline }, { userPages }] = await Promise.all([
        import('../../cli/accounts/lists.ts'),
        import('../../cli/accounts/lists.ts'),
      ])
      const pages = userPages((after) => admin.roles.holders(role, after))
      const output = { ...this.output, total, headline: holdersHeadline(total, role) }
      await this.printParts(holders.parts(pages, { store: admin.store, role }, output), signal)
    })
  }
}

/** Refuses a role in the wrong letter case: "nobody" would be a wrong answer for `admin` when there are Admins. */
function refuseOtherCase(role: string, roles: readonly string[]): void {
  const other = roles.find((name) => name.toLowerCase() === role.toLowerCase())
  if (other === undefined) return
  throw new Fault(
    'NotFound',
    `no user has the role "${role}", but some have "${other}": role names are case-sensitive`,
    {
      hints: [`svc roles holders ${shellWord(other)}`],
    },
  )
}
