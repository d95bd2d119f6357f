import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { admin, type modify, readEntry, suffix } from '../support/servers/slapd.ts'
import type { Expected, Row } from './row.ts'

export type Depths = Readonly<Record<'Basic' | 'Standard' | 'Advanced', Expected>>

/** Basic signs in nowhere, so that it sees only whether the server answers. */
export const failsFromStandard = (expected: Expected): Depths => ({
  Basic: { state: 'healthy' },
  Standard: expected,
  Advanced: expected,
})
export const healthy = failsFromStandard({ state: 'healthy' })

/** One row for each depth. */
export const atDepths = <Server>(row: Omit<Row<Server>, 'expected' | 'mode'>, depths: Depths): readonly Row<Server>[] =>
  (Object.entries(depths) as [ExecutionMode, Expected][]).map(([mode, expected]) => ({
    ...row,
    mode,
    fault: `${row.fault}, ${mode}`,
    expected,
  }))

/** A change of one entry, as a plain client makes it. */
export const changeOf = (text: string): string =>
  `dn: ou=people,${suffix}\nchangetype: modify\nreplace: description\ndescription: ${text}\n`

/** Throws unless a plain client meets the fault, too. */
export function mustRefuse(answer: ReturnType<typeof modify>, code: number, text: RegExp): void {
  if (answer.code === code && text.test(answer.text)) return
  throw new Error(`the client got ${answer.code} instead of ${code}: ${answer.text}`)
}

/** Throws unless a plain client misses a change at a replica that it can read. */
export function mustMiss(url: string, text: string, who: typeof admin = admin): void {
  const entry = readEntry(url, who, `ou=people,${suffix}`)
  if (!/^ou: people$/m.test(entry)) throw new Error(`the client cannot read the replica: ${entry}`)
  if (entry.includes(`description: ${text}`)) throw new Error('the client found the change on the replica')
}
