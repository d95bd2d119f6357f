import type { Screen } from '../io/io.ts'
import { width, wordsOf } from './width.ts'

/** Where a terminal does not say how wide it is. */
const usualColumns = 80

/**
 * A note for standard error, with a final line feed. On a terminal its lines end at spaces; in a pipe they are unchanged.
 * Commands, addresses and other words stay whole however long they are, so that they can be copied in one piece.
 */
export function note(text: string, { isTTY, columns }: Pick<Screen, 'isTTY' | 'columns'>): string {
  if (!isTTY) return `${text}\n`
  const lines = text.split('\n').flatMap((line) => noteLines(line, columns || usualColumns))
  return `${lines.join('\n')}\n`
}

/** A line that is a command or an excerpt of a file, or that has escape sequences: it has its layout already. */
const isLaidOut = (line: string): boolean => /^\s*(?:(?:svc|sudo) |\d* \|)/.test(line) || line.includes('\u001b')
/** A command at the end of a line. */
const command = /(?<=: +)(?:svc|sudo) .*$/

function noteLines(line: string, columns: number): readonly string[] {
  if (width(line) <= columns || isLaidOut(line)) return [line]
  const [indent = ''] = /^ */.exec(line) ?? []
  const further = /^(?:Warning|Note|Error): /.test(line) ? '  ' : indent
  const whole = command.exec(line)?.[0] ?? ''
  const words = wordsOf(line.slice(indent.length, line.length - whole.length).trimEnd(), columns - further.length)
  const lines: string[] = []
  let current = ''
  for (const word of whole === '' ? words : [...words, whole]) {
    const joined = current === '' ? `${indent}${word}` : `${current} ${word}`
    if (current === '' || width(joined) <= columns) {
      current = joined
      continue
    }
    lines.push(current)
    current = `${further}${word}`
  }
  return [...lines, current]
}
