import type { KeyFacts, UserFacts } from '../../core/service.ts'
import type { Screen } from '../io/io.ts'
import { repeatTargetFlags } from '../render/hints.ts'
import type { ListOutput } from '../render/list.ts'
import { type CellText, type FactRows, headline, moment, names, pairs } from '../render/table.ts'
import { keyRights, userOutcomes, users } from './lists.ts'

/**
 * One user, with the name or a sentence about the change as the headline. JSON also has whether the command changed or
 * removed the user.
 */
export function renderUser(
  user: UserFacts,
  store: string,
  as: ListOutput & {
    readonly sentence?: string
    readonly changed?: boolean
    readonly removed?: true
  },
): string {
  const { json, screen, sentence = user.userName, changed, removed } = as
  if (json) return userOutcomes.text(store, user, { changed, removed })
  if (!screen.isTTY) return users.record(user, { store })
  const facts: FactRows = [
    ['Display name', user.displayName ?? ''],
    ['E-mail', user.email ?? ''],
    ['Roles', names(user.roles)],
    ['Permissions', names(user.permissions)],
    ['State', user.disabled ? { text: 'disabled: cannot sign in', style: 'caution' } : ''],
    ['Password', user.hasPassword ? '' : { text: 'none: signs in with a key, or at a provider', style: 'caution' }],
    ['Digest', user.digest === undefined ? '' : digestTexts[user.digest]],
    ['Since', moment(user.createdAt)],
    ['Id', user.id],
    ['Store', store],
  ]
  return `${headline('ok', sentence, screen)}\n${pairs(facts, screen)}`
}

/** Whether the user can sign in by HTTP Digest. Almost nobody does, so that its absence is not worth a line. */
const digestTexts: Readonly<Record<NonNullable<UserFacts['digest']>, CellText>> = {
  none: '',
  valid: 'can also sign in by HTTP Digest, where svc.yaml turns it on',
  'not for Admin': { text: 'not while the user is Admin (--digest-for-admin)', style: 'caution' },
}

/** The text around a new key on stderr. The key itself goes to stdout. */
export function renderNewKey(
  key: KeyFacts,
  store: string,
  screen: Screen,
  argv: readonly string[] = [],
): { readonly before: string; readonly after: string } {
  const facts: FactRows = [
    ['Roles', keyRights(key)],
    [
      'Expires',
      key.expiresAt ? moment(key.expiresAt) : { text: 'never; limit it with --expires 90d', style: 'caution' },
    ],
    ['Store', store],
  ]
  const before = `${headline('ok', `The key ${key.name} acts as ${key.userName}`, screen)}\n${pairs(facts, screen)}\n`
  const after = [
    '',
    '  Copy the key now: it will not be shown again. Use it as a bearer token:',
    '    SVC_TOKEN=KEY svc … --server URL',
    `  To revoke it:   ${repeatTargetFlags(`svc keys revoke ${key.name}`, argv)}`,
  ].join('\n')
  return { before, after }
}
