import type { Provider } from './provider.ts'

/** Providers by their name on the wire, with how to load them. */
export const providers = {
  credentials: () => import('./credentials.ts'),
} satisfies Record<string, () => Promise<{ readonly default: Provider }>>

const aliases: Readonly<Record<string, keyof typeof providers>> = { login: 'credentials' }

/** The name under which a provider is known, for a name or alias in any letter case. */
export function providerName(name: string): string {
  const plain = name.toLowerCase()
  return (Object.hasOwn(aliases, plain) ? aliases[plain] : undefined) ?? plain
}

/** Finds a provider by name or alias, in any letter case (A1). Undefined when it is not configured. */
export async function findProvider(name: string): Promise<Provider | undefined> {
  const resolved = providerName(name)
  if (!isProvider(resolved)) return undefined
  return (await providers[resolved]()).default
}

const isProvider = (name: string): name is keyof typeof providers => Object.hasOwn(providers, name)
