import { Fault } from '../../core/base/errors.ts'
import { nameMistake } from '../../core/base/names.ts'
import { custom, repeatable } from '../command/flags.ts'
import { shellWord } from '../render/hints.ts'

/** Signs between several names in other programs. A role may have them in its name, but hardly on purpose. */
const separators = /[,;|]/

/**
 * A repeatable flag for the name of a role or permission to grant. Refuses what the store would refuse, and names that
 * are probably several; `--from-file` grants those.
 */
export const newNameFlag = (what: 'role' | 'permission', description: string) =>
  custom<string>({ parse: async (input) => newName(what, input) })({
    ...repeatable,
    description,
  })

function newName(what: 'role' | 'permission', input: string): string {
  const written = `--${what} ${JSON.stringify(input)}`
  if (input.trim() === '') {
    throw new Fault('Usage', `--${what} is empty`, { hints: ['Omit the flag, or give it a value.'] })
  }
  const mistake = nameMistake(input)
  if (mistake !== undefined) {
    throw new Fault('Usage', `${written} ${mistake}`, { hints: [`Write the name alone: --${what} NAME`] })
  }
  const [separator] = separators.exec(input) ?? []
  if (separator === undefined) return input
  const names = input.split(separators).map((name) => name.trim())
  const each = names.flatMap((name) => (name === '' ? [] : [`--${what} ${shellWord(name)}`])).join(' ')
  throw new Fault('Usage', `${written} would be one ${what} with "${separator}" in its name`, {
    hints: [`For several: ${each}`, 'For one of that name: svc roles assign --from-file FILE'],
  })
}
