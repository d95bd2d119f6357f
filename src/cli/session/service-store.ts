import { existsSync } from 'node:fs'
import { asAccount, Fault } from '../../core/base/errors.ts'
import type { ServiceStore } from '../../core/store/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { shellWord } from '../render/hints.ts'
import { storePath } from './session.ts'

export type SecondStore = {
  /** The refusal to create a store beside that of the service. Undefined if this account already has one. */
  readonly fault: Fault | undefined
  /** One line for an account that already has a store of its own. */
  readonly warning: string
}

/**
 * The fault and the warning that keep root from a second store where `svc.service` has one (P8). Undefined for other
 * accounts, for a store that a flag or a variable chooses, and on a machine without the store of a service.
 */
export async function secondStore(
  flags: { readonly store?: string | undefined },
  env: ProcessEnvironment,
  look: () => Promise<ServiceStore | undefined> = storeOfThisMachine,
): Promise<SecondStore | undefined> {
  if (machine.platform !== 'linux' || machine.accountId() !== 0) return undefined
  if ([flags.store, env['SVC_STORE'], env['SVC_HOME']].some((choice) => choice !== undefined)) return undefined
  const own = await storePath(flags, env)
  const service = await look()
  if (service === undefined || service.store === own) return undefined
  const { account, store } = service
  return {
    fault: existsSync(own) ? undefined : refusal(own, service),
    warning: `Warning: svc.service uses another store: ${store}, of the account ${account}`,
  }
}

const storeOfThisMachine = async (): Promise<ServiceStore | undefined> =>
  await (await (await import('../../core/store/index.ts')).loadServiceStore())()

const refusal = (own: string, { account, store, variables }: ServiceStore): Fault =>
  new Fault('Local', `svc.service keeps its store at ${store}, as the account ${account}; root has none at ${own}`, {
    hints: ['For another store: --store or SVC_STORE', asAccount(account, variables.map(shellWord))],
  })
