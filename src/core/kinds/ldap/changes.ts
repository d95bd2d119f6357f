import type { SettingsSpec } from '../../settings/index.ts'
import type { LdapConnection } from './connection.ts'

export const baseSetting = {
  type: 'text',
  observed: true,
  doc: 'Entry that must be found, e.g. dc=example,dc=org. By default the first naming context of the server',
} as const satisfies SettingsSpec[string]

/** The base entry of searches: the configured one, or the first that the server names. */
export const baseOf = ({ root }: Pick<LdapConnection, 'root'>, base: string | undefined): string | undefined =>
  base ??
  [...(root?.attributes.defaultnamingcontext ?? []), ...(root?.attributes.namingcontexts ?? [])].find(
    (name) => name !== '',
  )

/** The newest change (CSN) of each server that accepts changes, by its id in hexadecimal. */
export type Csns = ReadonlyMap<string, string>

/**
 * When a change was made, in milliseconds since 1970: `20260731120000.123456Z#000000#000#000000` at OpenLDAP, and
 * `6b04b10b000200010000` at 389-ds, which begins with seconds.
 */
export function csnTime(csn: string): number | undefined {
  if (/^[0-9a-f]{20}$/.test(csn)) return Number.parseInt(csn.slice(0, 8), 16) * 1_000
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d+)?Z#/.exec(csn) ?? []
  const time = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`)
  return Number.isNaN(time) ? undefined : time
}

/** Values of contextCSN, one for each server. CSNs of one server are ordered as texts. */
export const csnsOf = (values: readonly string[]): Csns =>
  new Map(
    values.flatMap((csn) => {
      const id = /^[\d.]+Z#[0-9a-f]+#([0-9a-f]+)#[0-9a-f]+$/.exec(csn)?.[1]
      return id === undefined || csnTime(csn) === undefined ? [] : [[id, csn] as const]
    }),
  )

/** Values of nsds50ruv of 389-ds: `{replica 1 ldap://a:389} 6b04b10b000000010000 6b04b10b000200010000`. */
export const csnsOfRuv = (values: readonly string[]): Csns =>
  new Map(
    values.flatMap((value) => {
      const [, id, csn] = /^\{replica (\d{1,5})[^}]*\} [0-9a-f]{20} ([0-9a-f]{20})$/.exec(value) ?? []
      return id === undefined || csn === undefined ? [] : [[id, csn] as const]
    }),
  )

/** The date of the newest change. */
export function newestChange(values: readonly string[]): number | undefined {
  const times = values.flatMap((value) => csnTime(value) ?? [])
  return times.length === 0 ? undefined : Math.max(...times)
}

/** Names are equal regardless of letter case and of spaces around commas and equals signs. */
export const isSameName = (one: string, other: string): boolean => plainName(one) === plainName(other)
const plainName = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .split(/([,=+])/)
    .map((part) => part.trim())
    .join('')
