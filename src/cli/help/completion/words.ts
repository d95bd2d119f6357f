/** A command line up to the cursor, as far as completion needs it. */
export type TypedLine = {
  /** The complete words after `svc`. */
  readonly words: readonly string[]
  /** The word at the cursor without its quotes; may be empty. */
  readonly current: string
}

const operators = /[;&|()\n]/

/** Reads the last command of a line that a POSIX shell would run, with its quotes and backslashes. */
export function readLine(line: string): TypedLine {
  let words: string[] = []
  let word: string | undefined
  let quote: string | undefined
  let isEscaped = false
  for (const char of line) {
    if (isEscaped) {
      isEscaped = false
      word = `${word ?? ''}${char}`
    } else if (char === '\\' && quote !== "'") isEscaped = true
    else if (quote !== undefined) {
      if (char === quote) quote = undefined
      else word = `${word ?? ''}${char}`
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (operators.test(char)) {
      words = []
      word = undefined
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = `${word ?? ''}${char}`
  }
  const program = words.findIndex((one) => /(?:^|[\\/])svc(?:\.cmd)?$/.test(one))
  return { words: words.slice(program + 1), current: word ?? '' }
}
