import { Fault } from '../errors.ts'
import { quoted, reason } from './guard.ts'

/** The ways out that every unusable store has. */
const waysOut = (path: string): readonly string[] => [
  'Restore it from a backup.',
  `To begin with an empty store instead, move it away first: mv ${quoted(path)} ${quoted(`${path}.old`)}`,
]

export const damaged = (path: string, what: string, cause?: unknown): Fault =>
  new Fault('Local', `The store ${path} ${what}`, { hints: waysOut(path), cause })

/** SQLite's primary result codes that an operator can do something about. */
const meanings: Readonly<Record<number, (path: string) => Fault>> = {
  5: (path) => locked(path),
  6: (path) => locked(path),
  8: (path) => new Fault('Local', `The store ${path} cannot be written by this account`),
  10: (path) => new Fault('Local', `The store ${path} cannot be read or written: the disk reports an error`),
  11: (path) => damaged(path, 'is damaged: its pages do not fit together'),
  13: (path) => new Fault('Local', `The store ${path} cannot be written: the disk is full`),
  14: (path) => new Fault('Local', `The store ${path} cannot be opened by this account`),
  26: (path) => damaged(path, 'is damaged, or not a SQLite database at all'),
}

const locked = (path: string): Fault =>
  new Fault('Local', `The store ${path} is locked by another process, which did not let go in time`, {
    hints: ['A backup or a database tool may hold it: end that, and try again.'],
  })

/** What an error in opening a store means. A Fault stays one. */
export function openingFault(path: string, error: unknown): Fault {
  if (error instanceof Fault) return error
  const { errcode } = error as { errcode?: unknown }
  const known = typeof errcode === 'number' ? meanings[errcode & 0xff] : undefined
  if (known) return known(path)
  return new Fault('Local', `The store ${path} cannot be opened: ${reason(error)}`, { cause: error })
}
