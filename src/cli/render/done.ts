import { type ListOutput, record } from './list.ts'
import { headline, pairs } from './table.ts'

/** The outcome of a change to a named object of the store. */
export function renderDone(
  name: string,
  store: string,
  as: ListOutput & {
    readonly sentence: string
    readonly word: 'removed' | 'revoked'
    /** The JSON document. */
    readonly document: () => string
  },
): string {
  const { json, screen, sentence, word } = as
  if (json) return as.document()
  if (!screen.isTTY) return record([store, name, word])
  return `${headline('ok', sentence, screen)}\n${pairs([['Store', store]], screen)}`
}
