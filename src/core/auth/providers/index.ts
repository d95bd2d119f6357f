import type { Provider } from './provider.ts'

/** A name on the wire, and how to load what it stands for. */
export const providers = {
  credentials: () => import('./credentials.ts'),
} satisfies Record<string, () => Promise<{ readonly default: Provider }>>

const aliases: Readonly<Record<string, keyof typeof providers>> = { login: 'credentials' }

/** A1: by name or alias, in any letter case; undefined for one that is not configured. */
export async function findProvider(name: string): Promise<Provider | undefined> {
  const plain = name.toLowerCase()
  const resolved = Object.hasOwn(aliases, plain) ? aliases[plain] : plain
  if (resolved === undefined || !isProvider(resolved)) return undefined
  return (await providers[resolved]()).default
}

const isProvider = (name: string): name is keyof typeof providers => Object.hasOwn(providers, name)
