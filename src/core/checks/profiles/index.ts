import { readFile } from 'node:fs/promises'
import { type Lazy, lazy } from '../../base/lazy.ts'
import type { Profile } from './profile.ts'

export * from './profile.ts'

/** Every built-in profile. svc.yaml may replace each by its name. */
export const profileNames = ['carbon', 'file-qc', 'vantage', 'vast'] as const
export type ProfileName = (typeof profileNames)[number]

/**
 * Whether a profile of this name comes with svc.
 *
 * @example
 * ```ts
 * isProfileName('carbon') // true
 * ```
 */
export const isProfileName = (name: string): name is ProfileName => (profileNames as readonly string[]).includes(name)

/** A built-in profile: a file in the language that svc.yaml has for profiles. */
export function loadProfile(name: ProfileName): Promise<Profile> {
  const profile = profiles.get(name) ?? lazy(() => readProfile(name))
  profiles.set(name, profile)
  return profile.get()
}

const profiles = new Map<ProfileName, Lazy<Profile>>()

async function readProfile(name: ProfileName): Promise<Profile> {
  const [{ parse }, text] = await Promise.all([import('yaml'), readFile(fileOf(name), 'utf8')])
  return parse(text, { merge: true }) as Profile
}

/** The file of a profile: beside this file in the sources, beside the bundle in a build. */
const fileOf = (name: ProfileName): URL =>
  new URL(import.meta.url.endsWith('.ts') ? `./${name}.yaml` : `./profile-${name}.yaml`, import.meta.url)
