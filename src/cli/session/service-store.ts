import { existsSync } from 'node:fs'
import { asAccount, Fault } from '../../core/base/errors.ts'
import type { ServiceStore } from '../../core/store/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine } from '../io/process.ts'
import { shellWord } from '../render/hints.ts'
import { servesHere, servesOfOtherStores } from './running.ts'
import { type LookForService, storeOfThisMachine, storePath } from './session.ts'

export type SecondStore = {
  /** The refusal to create a store beside that of the service. Undefined if this account already has one. */
  readonly fault: Fault | undefined
  /** One line for an account that already has a store of its own. */
  readonly warning: string
}

type StoreFlags = { readonly store?: string | undefined }

/**
 * The fault and the warning that keep root, and the account of `svc.service`, from a second store beside that of the
 * service (P8). Undefined for other accounts, for a store that a flag or SVC_STORE chooses, or SVC_HOME for root, and on a
 * machine without the store of a service.
 */
export async function secondStore(
  flags: StoreFlags,
  env: ProcessEnvironment,
  look: LookForService = storeOfThisMachine,
): Promise<SecondStore | undefined> {
  if (machine.platform !== 'linux' || isNamed(flags, env)) return undefined
  const isRoot = machine.accountId() === 0
  if (isRoot && env['SVC_HOME'] !== undefined) return undefined
  const service = await look()
  if (!service?.isUsed || !(isRoot || isOwn(service))) return undefined
  const own = await storePath(flags, env, async () => service)
  if (own === service.place) return undefined
  return { fault: existsSync(own) ? undefined : refusal(own, service), warning: `Warning: ${usesOther(service)}` }
}

/**
 * Throws Fault `Local` where a service of this machine uses another store than the one to replace, unless the command line
 * or SVC_STORE names it (P8). Resolves with a line that names both then.
 */
export async function refuseOtherStore(
  flags: StoreFlags,
  env: ProcessEnvironment,
  words: readonly string[],
  look: LookForService = storeOfThisMachine,
): Promise<string | undefined> {
  const { shownStore } = await import('../../core/store/index.ts')
  const place = await storePath(flags, env, look)
  const path = shownStore(place)
  const other = await otherStore(place, env, look)
  if (other === undefined) return undefined
  if (isNamed(flags, env)) return `Note: this replaces ${path}; ${other.sentence}`
  const command = ['svc', 'restore', ...words]
  throw new Fault('Local', `${other.sentence}; this would replace ${path}`, {
    hints: [
      `To restore it to that one: ${[...other.before, ...command, ...other.after].map(shellWord).join(' ')}`,
      `To restore it to this one: ${[...command, '--store', path].map(shellWord).join(' ')}`,
    ],
  })
}

type Other = {
  readonly sentence: string
  /** The words before and after a command that uses that store. */
  readonly before: readonly string[]
  readonly after: readonly string[]
}

async function otherStore(path: string, env: ProcessEnvironment, look: LookForService): Promise<Other | undefined> {
  const service = await look()
  if (service?.isUsed && service.place !== path) {
    const { account, variables, store } = service
    const sentence = usesOther(service)
    if (isOwn(service)) return { sentence, before: [], after: ['--store', store] }
    return { sentence, before: ['sudo', '-u', account, ...variables], after: [] }
  }
  const [serve] = servesOfOtherStores(path, homeOf(env))
  if (serve === undefined || servesHere(homeOf(env)).some(({ store }) => store === path)) return undefined
  const { url, store } = serve
  return { sentence: `the svc serve at ${url} uses another store: ${store}`, before: [], after: ['--store', store] }
}

const isNamed = ({ store }: StoreFlags, env: ProcessEnvironment): boolean =>
  store !== undefined || env['SVC_STORE'] !== undefined

const isOwn = ({ account }: ServiceStore): boolean => account === machine.accountName()

const usesOther = ({ store, account }: ServiceStore): string =>
  `svc.service uses another store: ${store}, of the account ${account}`

function refusal(own: string, service: ServiceStore): Fault {
  const { account, store, variables } = service
  const name = machine.accountName()
  const use = isOwn(service)
    ? 'Without SVC_HOME, commands use that store.'
    : asAccount(account, variables.map(shellWord))
  return new Fault(
    'Local',
    `svc.service keeps its store at ${store}, as the account ${account}; ${name} has none at ${own}`,
    {
      hints: ['For another store: --store or SVC_STORE', use],
    },
  )
}
