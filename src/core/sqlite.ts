import type * as Sqlite from 'node:sqlite'

/**
 * Node's own SQLite, loaded when it is first asked for. Older lines of Node 24 print an
 * ExperimentalWarning then, which no operator can act on: that one is dropped, any other is not.
 */
export const sqlite = (): typeof Sqlite => withoutSqliteWarning(() => process.getBuiltinModule('node:sqlite'))

/** Runs `load` and drops the one warning that loading node:sqlite may give. */
export function withoutSqliteWarning<T>(load: () => T): T {
  const emit = Reflect.get(process, 'emitWarning') as (...given: unknown[]) => void
  const filtered = (...given: unknown[]): void => {
    if (!isSqliteWarning(given)) Reflect.apply(emit, process, given)
  }
  Reflect.set(process, 'emitWarning', filtered)
  try {
    return load()
  } finally {
    Reflect.set(process, 'emitWarning', emit)
  }
}

function isSqliteWarning([warning, type]: readonly unknown[]): boolean {
  const message = warning instanceof Error ? warning.message : warning
  const name = warning instanceof Error ? warning.name : type
  return name === 'ExperimentalWarning' && typeof message === 'string' && message.startsWith('SQLite ')
}
