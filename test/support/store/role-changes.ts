import { createHash } from 'node:crypto'
import type { Grants, StoredRoleChange } from '../../../src/core/store/data.ts'

const names = ['Ops', 'ops', 'Support', 'Billing', 'Éditeur']
const none: readonly string[] = []

/** A way to choose that looks like chance, and is the same for the same seed. */
export function chooser(seed: string): (most: number) => number {
  let n = 0
  return (most) => {
    n += 1
    return createHash('sha256').update(`${seed} ${n}`).digest().readUInt32BE() % most
  }
}

export type NamedChange = { readonly id: string; readonly change: StoredRoleChange }

/** Random role changes, each of which changes something unless another process changes the roles meanwhile. */
export function* changes(prefix: string, count: number, holder: readonly string[]): Generator<NamedChange> {
  const choose = chooser(prefix)
  const has = new Set(holder)
  for (let n = 0; n < count; n += 1) {
    const name = names[choose(names.length)] ?? ''
    const away = has.delete(name)
    if (!away) has.add(name)
    const add = { roles: away ? none : [name], permissions: none }
    const remove = { roles: away ? [name] : none, permissions: none }
    yield { id: `${prefix}-${n}`, change: { add, remove } }
  }
}

/** Role changes by chance: of several names, in both lists, of what is held and what is not. */
export function anyChanges(prefix: string, count: number): readonly NamedChange[] {
  const choose = chooser(prefix)
  const some = (): readonly string[] => Array.from({ length: choose(3) }, () => names[choose(names.length)] ?? '')
  const grants = (): Grants => ({ roles: some(), permissions: some() })
  return Array.from({ length: count }, (_, n) => ({
    id: `${prefix}-${n}`,
    change: { add: grants(), remove: grants() },
  }))
}

/** The roles after a change: the rule again, in its simplest form. */
export function applied({ add, remove }: StoredRoleChange, holdings: Grants): Grants {
  const list = (key: keyof Grants): readonly string[] => {
    const remaining = holdings[key].filter((name) => !remove[key].includes(name) || add[key].includes(name))
    return [...new Set([...remaining, ...add[key]])]
  }
  return { roles: list('roles'), permissions: list('permissions') }
}
