import { type ListOutput, record } from './list.ts'
import { headline, pairs } from './table.ts'

/** The outcome of a change to a named object of the store, or of the server that `place` names. */
export function renderDone(
  name: string,
  place: string,
  as: ListOutput & {
    readonly sentence: string
    readonly word: 'removed' | 'revoked' | 'forgotten'
    /** The kind of the place (default `Store`). */
    readonly of?: 'Store' | 'Target'
    /** The JSON document. */
    readonly document: () => string
  },
): string {
  const { json, screen, sentence, word, of = 'Store' } = as
  if (json) return as.document()
  if (!screen.isTTY) return record([place, name, word])
  return `${headline('ok', sentence, screen)}\n${pairs([[of, place]], screen)}`
}
