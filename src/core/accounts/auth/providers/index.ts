import type { OpenIdSettings, Provider, WaysToSignIn } from './provider.ts'

type ProviderRow = {
  readonly load: () => Promise<{ readonly default: Provider }>
  /** Whether svc.yaml turns it on. */
  readonly isOn: (ways: WaysToSignIn) => boolean
}

/** Providers by their name on the wire. Only those that are turned on are found and loaded. */
const providers: Readonly<Record<string, ProviderRow>> = {
  credentials: { load: () => import('./credentials.ts'), isOn: () => true },
  digest: { load: () => import('./digest.ts'), isOn: ({ digest }) => digest },
}

const loadOpenId = () => import('../openid/index.ts')

/** Names of providers that stand for another one. */
const aliases: Readonly<Record<string, string>> = { login: 'credentials' }

/** The name under which a provider is known, for a name or alias in any letter case. */
export function providerName(name: string): string {
  const plain = name.toLowerCase()
  return (Object.hasOwn(aliases, plain) ? aliases[plain] : undefined) ?? plain
}

/** Finds a provider by name or alias, in any letter case (A1). Undefined when it is not turned on. */
export async function findProvider(name: string, ways: WaysToSignIn): Promise<Provider | undefined> {
  const resolved = providerName(name)
  const row = Object.hasOwn(providers, resolved) ? providers[resolved] : undefined
  if (row) return row.isOn(ways) ? (await row.load()).default : undefined
  const settings = openIdNamed(resolved, ways)
  return settings && (await loadOpenId()).openIdProvider(settings)
}

const openIdNamed = (name: string, { openid = [] }: WaysToSignIn): OpenIdSettings | undefined =>
  openid.find((settings) => settings.name === name)

/** Loads every provider that is turned on. Contacts none. */
export const loadProviders = async (ways: WaysToSignIn): Promise<void> => {
  const on = Object.values(providers).filter(({ isOn }) => isOn(ways))
  const openId = ways.openid?.length ? [loadOpenId().then(({ preloadOpenId }) => preloadOpenId())] : []
  await Promise.all([...on.map(({ load }) => load()), ...openId])
}
