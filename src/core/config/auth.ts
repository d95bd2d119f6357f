import { type Problem, readSettings, type SettingsContext, type SettingsSpec, type Values } from '../settings/index.ts'

/** Further ways to sign in. Without this section, passwords are the only one. */
export const authSettings = {
  digest: {
    type: 'flag',
    default: false,
    doc: 'Whether users with a digest secret may sign in by HTTP Digest (RFC 7616)',
  },
} as const satisfies SettingsSpec

export type AuthConfig = Values<typeof authSettings>

/** Reads the `auth:` section. Paths of problems are relative to it. */
export function readAuth(
  raw: unknown,
  context: SettingsContext,
): { readonly values: AuthConfig; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] } {
  return readSettings(authSettings, raw, context)
}
