import { sanitizeLine } from '../../core/base/sanitize.ts'
import type { ServerType } from '../../core/protocol/index.ts'

/** A word, quoted for a shell if needed. */
export const shellWord = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** The command that tries a monitor, with the flags of this command line that decide which svc.yaml has it. */
export function testCommand(
  { config, store }: { readonly config?: string | undefined; readonly store?: string | undefined },
  monitor: string,
  type: ServerType | undefined,
): string {
  return [
    'svc monitors test',
    ...(store === undefined ? [] : [`--store ${shellWord(store)}`]),
    ...(config === undefined ? [] : [`--config ${shellWord(config)}`]),
    shellWord(monitor),
    ...(type === undefined ? [] : [`--type ${type}`]),
  ].join(' ')
}

/** The flags that choose what a command acts on, and as whom, in the order in which hints repeat them. */
const targetFlags = ['server', 'profile', 'local', 'store', 'config', 'ca-file', 'insecure-http', 'user'] as const
type TargetFlag = (typeof targetFlags)[number]

const withoutValue: ReadonlySet<TargetFlag> = new Set(['local', 'insecure-http'])
/** Each of these alone decides where a command acts. */
const destinations: ReadonlySet<TargetFlag> = new Set(['server', 'profile', 'local'])

const connection: readonly TargetFlag[] = targetFlags.filter((flag) => flag !== 'user')
const server: readonly TargetFlag[] = ['server', 'profile', 'ca-file', 'insecure-http']

const whoami: readonly TargetFlag[] = ['server', 'profile', 'local', 'ca-file', 'insecure-http']

/** The target flags of every command that hints suggest. */
export const targetFlagsOf: Readonly<Record<string, readonly TargetFlag[]>> = {
  'audit list': connection,
  'audit verify': connection,
  'heartbeats list': connection,
  'heartbeats remove': connection,
  'keys create': connection,
  'keys list': connection,
  'keys revoke': connection,
  'roles holders': connection,
  'users add': connection,
  'users disable': connection,
  'users enable': connection,
  'users link': connection,
  'users list': connection,
  'users passwd': connection,
  'users remove': connection,
  'users show': connection,
  'users unlink': connection,
  'users unlock': connection,
  health: connection,
  drill: connection,
  heartbeat: connection,
  history: connection,
  'roles assign': connection,
  'roles show': connection,
  'roles unassign': connection,
  api: server,
  login: [...server, 'user'],
  logout: server,
  passwd: whoami,
  'sessions end': connection,
  'sessions list': connection,
  silence: connection,
  'silence end': connection,
  'silence list': connection,
  whoami,
  serve: ['store', 'config'],
  'monitors list': ['store', 'config'],
  'monitors test': ['store', 'config'],
  'monitors validate': ['config'],
  doctor: connection,
}

/** A command of one or two words. */
const suggestion = /\bsvc ([a-z]{1,20})(?: ([a-z]{1,20}))?(?![\w-])/g

/**
 * Repeats the target flags of this command line in every command that `hint` suggests, so that the command acts on the
 * same server, store or svc.yaml. A suggestion that has a flag of its own keeps it. Credentials in URLs are left out.
 * `ofCommand`: the command of `argv`. Only the --user of `svc login` says who signs in.
 */
export function repeatTargetFlags(hint: string, argv: readonly string[], ofCommand = ''): string {
  const words = targetWords(argv, ofCommand)
  if (words.size === 0) return hint
  return hint.replace(suggestion, (phrase: string, topic: string, name: string | undefined, at: number) => {
    const pair = `${topic} ${name ?? ''}`
    const id = Object.hasOwn(targetFlagsOf, pair) ? pair : topic
    if (!Object.hasOwn(targetFlagsOf, id)) return phrase
    const command = `svc ${id}`
    const [rest = ''] = hint.slice(at + command.length).split(/\n|\bsvc /)
    const present = targetFlags.filter((flag) => rest.includes(`--${flag}`))
    const hasDestination = present.some((flag) => destinations.has(flag))
    const repeated = (targetFlagsOf[id] ?? []).flatMap((flag) => {
      const word = present.includes(flag) || (hasDestination && destinations.has(flag)) ? undefined : words.get(flag)
      return word === undefined ? [] : [word]
    })
    return [command, ...repeated].join(' ') + phrase.slice(command.length)
  })
}

/** The target flags of a command line, each as a hint repeats it. */
function targetWords(argv: readonly string[], command: string): ReadonlyMap<TargetFlag, string> {
  const end = argv.indexOf('--')
  const own = end === -1 ? argv : argv.slice(0, end)
  const words = new Map<TargetFlag, string>()
  for (const flag of command === 'login' ? targetFlags : connection) {
    if (withoutValue.has(flag)) {
      if (own.includes(`--${flag}`)) words.set(flag, `--${flag}`)
      continue
    }
    const at = own.findIndex(
      (word) => word === `--${flag}` || word.startsWith(`--${flag}=`) || (flag === 'user' && word === '-u'),
    )
    const word = own[at]
    if (word === undefined) continue
    const value = word.includes('=') ? word.slice(word.indexOf('=') + 1) : own[at + 1]
    const publicValue = value === undefined ? undefined : withoutSecrets(flag, value)
    if (publicValue) words.set(flag, `--${flag} ${shellWord(sanitizeLine(publicValue))}`)
  }
  return words
}

/**
 * A flag's value without the credentials and parameters of a URL. Undefined for a malformed URL, in which a password
 * cannot be recognized.
 */
function withoutSecrets(flag: TargetFlag, value: string): string | undefined {
  const isUrl = /^[a-z][a-z0-9+.-]+:/i.test(value)
  if (!isUrl) return flag === 'server' && value.includes('@') ? undefined : value
  if (!URL.canParse(value) || !value.includes('://')) return undefined
  const { protocol, host, pathname } = new URL(value)
  return `${protocol}//${host}${pathname === '/' && !value.endsWith('/') ? '' : pathname}`
}
