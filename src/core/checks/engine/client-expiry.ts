import { oncePerObject } from '../../base/lazy.ts'
import { type ClientValues, readClient } from '../../base/net/trust.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { SettingsSpec, Threshold } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { evaluateClientExpiry } from './certificates.ts'
import { type Check, isNameIn } from './check.ts'
import { type CheckContext, runsChecksOf } from './kind.ts'
import { fail, type Result } from './result.ts'

const name = 'client certificate'
const shallowest = 'Standard'

type Configured = ClientValues & { readonly clientExpiry?: Threshold | undefined }

/** The client certificates that settings name: beside a URL, in `tls`, or in a step. */
const clientsIn = (settings: unknown): readonly Configured[] =>
  typeof settings !== 'object' || settings === null
    ? []
    : [...('clientCert' in settings ? [settings as Configured] : []), ...Object.values(settings).flatMap(clientsIn)]
const none: readonly Configured[] = []
const clientsOf = oncePerObject((settings: object) => {
  const clients = clientsIn(settings)
  return clients.length === 0 ? none : clients
})

const canHold = (settings: SettingsSpec): readonly string[] =>
  Object.entries(settings).flatMap(([key, setting]) =>
    key === 'clientCert' || ('fields' in setting && canHold(setting.fields).length > 0) ? [key] : [],
  )

/** The declaration of the result, for every kind whose settings may name a client certificate. */
export function clientExpiry(settings: SettingsSpec, depth: ExecutionMode = shallowest): readonly Check<unknown>[] {
  const when = canHold(settings)
  if (when.length === 0) return []
  return [
    {
      depth,
      results: { [name]: 'The client certificate that svc shows remains valid long enough' },
      when,
      settings: {},
      provesNoReading: true,
      elsewhere: true,
      impossibleWith: (values: object) => clientsOf(values).length === 0,
      applies: () => false,
      observe: () => Promise.resolve(),
      evaluate: () => [],
    },
  ]
}

/**
 * The result for the client certificate that ends first. It comes before any connection, because a server refuses an
 * expired one in the handshake.
 */
export async function* runClientExpiry(settings: object, context: CheckContext): AsyncGenerator<Result> {
  const clients = clientsOf(settings)
  if (clients.length === 0 || !runsChecksOf(context, shallowest) || isNameIn(context.without, name)) return
  const read = clients.map(async (one) => ({ threshold: one.clientExpiry, own: await readClient(one, context.files) }))
  const all = await Promise.all(read).catch((error: unknown) => {
    if (error instanceof ProbeError) return error
    throw error
  })
  if (all instanceof ProbeError) return yield fail(name, all.fault, all.message)
  const [first] = all
    .flatMap(({ own, threshold }) => (own ? [{ ...own, threshold }] : []))
    .toSorted((a, b) => a.certificate.validToDate.getTime() - b.certificate.validToDate.getTime())
  if (first) yield evaluateClientExpiry(name, first, context.date())
}
