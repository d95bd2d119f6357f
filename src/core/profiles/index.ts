import type { Profile } from './profile.ts'

export * from './profile.ts'

/** Every built-in profile: its name and how to load it. svc.yaml may replace each by its name. */
export const profiles = {
  carbon: () => import('./carbon.ts'),
  'file-qc': () => import('./file-qc.ts'),
  vantage: () => import('./vantage.ts'),
  vast: () => import('./vast.ts'),
} as const satisfies Record<string, () => Promise<{ readonly default: Profile }>>
export type ProfileName = keyof typeof profiles

export const profileNames = Object.keys(profiles) as readonly ProfileName[]
export const isProfileName = (name: string): name is ProfileName => Object.hasOwn(profiles, name)
export const loadProfile = async (name: ProfileName): Promise<Profile> => (await profiles[name]()).default
