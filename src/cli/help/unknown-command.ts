import { Fault } from '../../core/base/errors.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import { shellWord } from '../render/hints.ts'

/** The names of all commands (`roles assign`) and topics (`roles`). */
export type CommandNames = { readonly commands: readonly string[]; readonly topics: readonly string[] }

/** Words of other programs for the second word of a command. Each group has one meaning. */
const alike: readonly (readonly string[])[] = [
  ['list', 'ls', 'tail', 'log', 'all'],
  ['show', 'holders', 'get', 'list', 'ls', 'info', 'view', 'describe'],
  ['add', 'create', 'assign', 'set', 'new', 'grant', 'give', 'put'],
  ['remove', 'revoke', 'unassign', 'unset', 'end', 'rm', 'delete', 'del', 'drop', 'take'],
  ['passwd', 'password'],
  ['test', 'run', 'check', 'try'],
  ['validate', 'lint', 'verify', 'check'],
  ['use', 'switch', 'select'],
]

/** Words of other programs and earlier versions for commands of one word. */
const meanings: Readonly<Record<string, string>> = {
  check: 'health',
  status: 'health',
  ping: 'health',
  start: 'serve',
  server: 'serve',
  daemon: 'serve',
  signin: 'login',
  logon: 'login',
  signout: 'logout',
  me: 'whoami',
  password: 'passwd',
  setup: 'init',
  quiet: 'silence',
  lint: 'monitors validate',
}

/** The longest command line that a suggestion repeats, in characters. */
const maxLine = 120

/**
 * The fault for a command line that names no command. Only the words that name a command count as unknown; a suggestion
 * repeats the arguments and flags after them.
 */
export function unknownCommand(argv: readonly string[], names: CommandNames): Fault {
  const words = argv[0] === 'help' ? argv.slice(1) : argv
  const [first = '', second = ''] = words
  const isTopic = names.topics.includes(first)
  const hasSecond = second !== '' && !second.startsWith('-')
  const typed = isTopic && hasSecond ? `${first} ${second}` : first
  const meant = isTopic ? inTopic(first, second, names) : atTop(first, hasSecond ? second : '', names)
  const suggestions = meant.map(({ command, used }) => line(command, words.slice(used)))
  const own = isTopic ? first : undefined
  return new Fault('Usage', `unknown command "${typed}"`, {
    hints: [
      ...(suggestions.length > 0 ? [`Did you mean ${suggestions.join(' or ')}?`] : []),
      own === undefined ? 'svc help shows the commands.' : `svc ${own} --help shows its commands.`,
    ],
  })
}

/** A command that was probably meant, and how many words of the command line stand for its name. */
type Meant = { readonly command: string; readonly used: number }

/** At most two commands of a topic. */
function inTopic(topic: string, word: string, names: CommandNames): readonly Meant[] {
  const own = names.commands.flatMap((name) => (name.startsWith(`${topic} `) ? [name.slice(topic.length + 1)] : []))
  const nearest = didYouMean(word, own)
  const [group = []] = alike.filter((one) => one.includes(word) && one.some((synonym) => own.includes(synonym)))
  const others = group.filter((synonym) => own.includes(synonym))
  const fitting = nearest === undefined ? others : [nearest]
  if (fitting.length > 0) return fitting.slice(0, 2).map((name) => ({ command: `${topic} ${name}`, used: 2 }))
  return elsewhere(word, names).map((command) => ({ command, used: 2 }))
}

/** The command whose second word is this, if there is only one. */
function elsewhere(word: string, { commands }: CommandNames): readonly string[] {
  const same = commands.filter((name) => name.endsWith(` ${word}`))
  return same.length === 1 ? same : []
}

function atTop(first: string, second: string, names: CommandNames): readonly Meant[] {
  const nearest = didYouMean(first, [...names.commands.filter((name) => !name.includes(' ')), ...names.topics])
  if (nearest !== undefined && names.topics.includes(nearest)) {
    if (second === '') return [{ command: nearest, used: 1 }]
    if (names.commands.includes(`${nearest} ${second}`)) return [{ command: `${nearest} ${second}`, used: 2 }]
    const within = inTopic(nearest, second, names)
    return within.length > 0 ? within : [{ command: nearest, used: wordsUsed(second) }]
  }
  if (nearest !== undefined) return [{ command: nearest, used: 1 }]
  const meaning = Object.hasOwn(meanings, first.toLowerCase()) ? meanings[first.toLowerCase()] : undefined
  const fitting = meaning === undefined ? elsewhere(first, names) : [meaning]
  return fitting.map((command) => ({ command, used: 1 }))
}

/** A topic alone shows its commands, so the second word is left out. */
const wordsUsed = (second: string): number => (second === '' ? 1 : 2)

function line(command: string, rest: readonly string[]): string {
  const repeated = ['svc', command, ...rest.map(shellWord)].join(' ')
  return repeated.length <= maxLine ? repeated : `svc ${command}`
}
