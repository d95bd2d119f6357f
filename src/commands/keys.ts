import { lists, prints } from '../cli/command/base.ts'
import { connectionFlags, custom, repeatable, required, requiredArgument, text } from '../cli/command/flags.ts'
import { shellWord } from '../cli/render/hints.ts'
import { AdminCommand, changeFlags, orNearest, userNamed } from '../cli/session/admin.ts'
import { Fault } from '../core/base/errors.ts'
import { nearestHint } from '../core/base/suggest.ts'
import { coversPermission, type KeyEntry, permissionMistake } from '../core/protocol/index.ts'
import { fromEntry } from '../core/protocol/service/facts.ts'
import type { KeyFacts, UserFacts } from '../core/protocol/service/service.ts'

const load = () => import('../cli/accounts/lists.ts')

const keyOf = (entry: KeyEntry): KeyFacts => fromEntry(entry) as KeyFacts

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
/** Ten years. */
const maxMs = 3_650 * 86_400_000

/** `90d`, `12h`, `2w` → milliseconds. Throws Fault `Usage`. */
export function parseLifetime(what: string, input: string): number {
  const [, figure, unit] = /^(\d{1,6})(m|h|d|w)$/.exec(input.trim()) ?? []
  const ms = Number(figure) * (units[unit ?? ''] ?? Number.NaN)
  if (ms > 0 && ms <= maxMs) return ms
  const mistake = ms > maxMs ? `${input} is longer than 10 years` : `"${input}" is not a valid lifetime`
  throw new Fault('Usage', `--${what} ${mistake}`, {
    hints: [`Write a whole number and its unit, for example --${what} 12h, 90d or 52w.`],
  })
}

export class KeysCreate extends AdminCommand {
  static override summary = 'Create a key with which a machine acts as a user'
  static override description =
    `Prints the key once, on stdout, to pipe it into a secret store; everything else goes to stderr.
--role and --permission limit the key to roles and permissions of the user. With the permission
health, or health:Sql for one server type, another machine can read the details of health answers;
users with a role can read them, too.`
  static override answers = { '': prints(async () => (await load()).newKeys) }
  static override examples = [
    '<%= config.bin %> keys create ci --user deploy --expires 90d',
    '<%= config.bin %> keys create probe --user ops --role Ops --expires 52w > probe.key',
    '<%= config.bin %> keys create agent-7 --user agents --permission heartbeat',
    '<%= config.bin %> keys create prometheus --user monitoring --permission health',
  ]
  static override args = { name: requiredArgument('NAME', 'Name of the key') }
  static override flags = {
    user: text('user')({ char: 'u', description: 'User that the key acts as: user name or e-mail' }),
    role: text('role')({ description: 'Limit the key to this role of the user; repeatable', ...repeatable }),
    permission: text('permission')({
      description: 'Limit the key to this permission, and to no roles unless --role is given too; repeatable',
      ...repeatable,
    }),
    expires: custom<number>({
      helpValue: '<12h|90d|…>',
      description: 'Lifetime of the key (default: until revoked)',
      parse: async (input) => parseLifetime('expires', input),
    })(),
    ...changeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(KeysCreate)
    const name = required(args.name, 'NAME')
    if (flags.user === undefined) {
      throw new Fault('Usage', '--user is missing: which user does the key act as?', {
        hints: [`svc keys create ${shellWord(name)} --user USER`],
      })
    }
    const user = flags.user
    await this.administer(flags, signal, async (admin) => {
      const owner = await userNamed(admin, user)
      refuseMissing('role', flags.role ?? [], owner)
      refuseMissing('permission', flags.permission ?? [], owner)
      const { role: Roles, permission: Permissions, expires: Lifetime, reason: Reason } = flags
      const request = { Name: name, UserName: owner.userName, Roles, Permissions, Lifetime, Reason }
      const { Key = {}, Secret: secret = '' } = await admin.service.createKey(request, admin.call)
      const key = keyOf(Key)
      const { keyRow, newKeys, renderNewKey } = await load()
      if (flags.json) return this.print(newKeys.text(admin.store, secret, keyRow(key, this.io.clock.now())))
      const { before, after } = renderNewKey(key, admin.store, this.io.stderr, this.argv)
      this.say(before)
      this.print(secret)
      this.say(after)
    })
  }
}

/** Refuses rights that the user does not have: a key cannot exceed its user. */
function refuseMissing(what: 'role' | 'permission', requested: readonly string[], owner: UserFacts): void {
  const granted = what === 'role' ? owner.roles : owner.permissions
  const mistake = what === 'role' ? undefined : requested.map(permissionMistake).find((each) => each !== undefined)
  if (mistake !== undefined) throw new Fault('BadRequest', mistake)
  const unheld = requested.find((name) => (what === 'role' ? !granted.includes(name) : !coversPermission(owner, name)))
  if (unheld === undefined) return
  const { userName } = owner
  throw new Fault('BadRequest', `--${what} "${unheld}": ${userName} does not have it, so a key cannot have it either`, {
    hints: [
      ...nearestHint(unheld, granted),
      granted.length === 0
        ? `svc roles assign ${shellWord(userName)} --${what} ${shellWord(unheld)} --local   assigns it`
        : `${userName} has: ${granted.join(', ')}`,
    ],
  })
}

export class KeysList extends AdminCommand {
  static override summary = 'List the keys, without their secrets'
  static override answers = { '': lists(async () => (await load()).keys) }
  static override examples = ['<%= config.bin %> keys list', '<%= config.bin %> keys list --json']
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(KeysList)
    await this.administer(flags, signal, async ({ service, call, store }) => {
      const { keyRow, keys, namedPages } = await load()
      const now = this.io.clock.now()
      const { Total: total = 0, Keys: first } = await service.getKeys({}, call)
      const page = async (After?: string) =>
        ((After === undefined ? first : (await service.getKeys({ After }, call)).Keys) ?? []).map((entry) =>
          keyRow(keyOf(entry), now),
        )
      const pages = namedPages(page, ({ name }) => name)
      await this.printParts(keys.parts(pages, { store }, { ...this.output, total }), signal)
    })
  }
}

export class KeysRevoke extends AdminCommand {
  static override summary = 'Revoke a key; takes effect immediately'
  static override answers = { '': prints(async () => (await load()).revokedKeys) }
  static override examples = ['<%= config.bin %> keys revoke ci --reason "found in a log"']
  static override args = { name: requiredArgument('NAME', 'Name of the key') }
  static override flags = changeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(KeysRevoke)
    const name = required(args.name, 'NAME')
    await this.administer(flags, signal, async (admin) => {
      await orNearest(admin.service.revokeKey({ Name: name, Reason: flags.reason }, admin.call), name, {
        message: `there is no key "${name}"`,
        near: async (Like) =>
          ((await admin.service.getKeys({ Like }, admin.call)).Keys ?? []).map(({ Name = '' }) => Name),
        hint: () => 'svc keys list shows the keys.',
      })
      const sentence = `The key ${name} is revoked and no longer valid`
      const { renderDone } = await import('../cli/render/done.ts')
      const { revokedKeys } = await load()
      const document = (): string => revokedKeys.text({ store: admin.store }, [{ name, revoked: true }])
      this.printList(renderDone(name, admin.store, { ...this.output, sentence, word: 'revoked', document }))
    })
  }
}
