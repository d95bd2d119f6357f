import type * as Sqlite from 'node:sqlite'

/**
 * Node's own SQLite, loaded when it is first asked for. Older lines of Node 24 print an
 * ExperimentalWarning then, which no operator can act on: that one is dropped, any other is not.
 */
export const sqlite = (): typeof Sqlite => withoutSqliteWarning(() => process.getBuiltinModule('node:sqlite'))

/** Runs `load` and drops the one warning that loading node:sqlite may give. */
export function withoutSqliteWarning<T>(load: () => T): T {
  const emit = process.emitWarning
  const filtered = (...given: Parameters<typeof emit>): void => {
    if (!isSqliteWarning(given)) emit.apply(process, given)
  }
  process.emitWarning = filtered as typeof emit
  try {
    return load()
  } finally {
    process.emitWarning = emit
  }
}

function isSqliteWarning([warning, type]: readonly unknown[]): boolean {
  const message = warning instanceof Error ? warning.message : warning
  const name = warning instanceof Error ? warning.name : type
  return name === 'ExperimentalWarning' && typeof message === 'string' && message.startsWith('SQLite ')
}
