import { type ListOutput, record } from './list.ts'
import { headline, pairs } from './table.ts'

/** The outcome of a change to a named object of the store. */
export function renderDone(
  name: string,
  store: string,
  as: ListOutput & { readonly sentence: string; readonly word: 'removed' | 'revoked' },
): string {
  const { json, screen, sentence, word } = as
  if (json) return JSON.stringify({ store, name, [word]: true })
  if (!screen.isTTY) return record([store, name, word])
  return `${headline('ok', sentence, screen)}\n${pairs([['Store', store]], screen)}`
}
