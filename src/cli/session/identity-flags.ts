import { Fault } from '../../core/base/errors.ts'
import { text } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import type { CommandTarget } from '../settings/target.ts'
import { configuration } from './session.ts'

/** The flags that name an identity of an OpenID provider. */
export const identityFlags = {
  provider: text('provider')({ description: "Name of the OpenID provider in svc.yaml, or its issuer's URL" }),
  subject: text('subject')({ description: "Who the user is there: the claim sub of the user's tokens" }),
} as const

/**
 * The provider of an operation: on this machine the issuer, of a provider of its svc.yaml or from a URL. A server
 * finds a name in its own svc.yaml.
 */
export async function providerFor(
  flags: { readonly provider: string | undefined; readonly config?: string | undefined },
  target: CommandTarget,
  env: ProcessEnvironment,
): Promise<string> {
  const { provider } = flags
  if (provider === undefined) {
    throw new Fault('Usage', '--provider is missing', { hints: ["--provider NAME, or the issuer's URL"] })
  }
  if (target.kind === 'server' || /^https?:\/\//.test(provider)) return provider
  const { auth } = await configuration({ config: flags.config }, env, { tolerant: true })
  const match = auth?.openid?.find(({ name }) => name === provider.toLowerCase())
  if (match) return match.issuer
  const { notAProvider } = await import('../../core/accounts/auth/index.ts')
  throw new Fault('Usage', `--provider ${notAProvider((auth?.openid ?? []).map(({ name }) => name))}`)
}
