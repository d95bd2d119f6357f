import type { Provider } from './provider.ts'

/** Providers by their name on the wire, with how to load them. */
export const providers = {
  credentials: () => import('./credentials.ts'),
} satisfies Record<string, () => Promise<{ readonly default: Provider }>>

const aliases: Readonly<Record<string, keyof typeof providers>> = { login: 'credentials' }

/** Finds a provider by name or alias, in any letter case (A1). Undefined when it is not configured. */
export async function findProvider(name: string): Promise<Provider | undefined> {
  const plain = name.toLowerCase()
  const resolved = Object.hasOwn(aliases, plain) ? aliases[plain] : plain
  if (resolved === undefined || !isProvider(resolved)) return undefined
  return (await providers[resolved]()).default
}

const isProvider = (name: string): name is keyof typeof providers => Object.hasOwn(providers, name)
