import { width } from '../../src/cli/render/width.ts'

/** A piece of a line with one style. `column` is counted from 0. */
export type Run = {
  readonly column: number
  readonly text: string
  readonly bold: boolean
  readonly dim: boolean
  /** One of the eight colours of a terminal, from 0 (black) to 7 (white). Undefined: the colour of ordinary text. */
  readonly colour: number | undefined
}

type Style = Omit<Run, 'column' | 'text'>
const plain: Style = { bold: false, dim: false, colour: undefined }

/** A character on the screen, or the second half of a wide one, whose text is empty. */
type Cell = { readonly text: string; readonly style: Style }

/** A control sequence with its parameters and its final letter, or one character. */
const token = /\x1b\[([\d;?]*)([A-Za-z])|[\s\S]/gu

/**
 * The lines that a terminal of `columns` shows after this output, without empty lines at its end. Knows what svc writes:
 * styles, carriage returns, erased lines and, for a screen that is redrawn, the beginnings of lines. Continues longer lines on the next one. Throws for any other control sequence.
 */
export function screenAfter(output: string, columns: number): readonly (readonly Run[])[] {
  const lines: Cell[][] = [[]]
  let row = 0
  let column = 0
  let style = plain
  const feed = (): void => {
    row += 1
    column = 0
    if (row >= lines.length) lines.push([])
  }
  for (const [text, parameters = '', final] of output.matchAll(token)) {
    if (final === 'm') style = styled(style, parameters)
    else if (final === 'K') erase(lines[row] ?? [], parameters === '2' ? 0 : column)
    else if (final === 'J') lines.splice(0, lines.length)
    else if (final === 'H') {
      row = Number(parameters.split(';')[0]) - 1
      column = 0
      while (lines.length <= row) lines.push([])
    } else if (final !== undefined) {
      if (!['?25', '?7', '?1049'].includes(parameters))
        throw new Error(`the capture has an unknown control sequence: ${JSON.stringify(text)}`)
    } else if (text === '\n') feed()
    else if (text === '\r') column = 0
    else {
      const available = width(text)
      if (column + available > columns) feed()
      const line = lines[row] ?? []
      while (line.length < column) line.push({ text: ' ', style: plain })
      line[column] = { text, style }
      if (available === 2) line[column + 1] = { text: '', style }
      column += available
    }
  }
  while (lines.length > 0 && textOf(lines.at(-1) ?? []).trim() === '') lines.pop()
  return lines.map(runsOf)
}

function erase(line: Cell[], from: number): void {
  line.length = Math.min(line.length, from)
}

const textOf = (line: readonly Cell[]): string => line.map(({ text }) => text).join('')

function styled(before: Style, parameters: string): Style {
  let style = before
  for (const parameter of parameters.split(';')) style = changed(style, Number(parameter))
  return style
}

function changed(style: Style, code: number): Style {
  if (code === 0) return plain
  if (code === 1) return { ...style, bold: true }
  if (code === 2) return { ...style, dim: true }
  if (code === 22) return { ...style, bold: false, dim: false }
  if (code === 39) return { ...style, colour: undefined }
  if (code >= 30 && code <= 37) return { ...style, colour: code - 30 }
  throw new Error(`the capture has an unknown style: ${code}`)
}

/** Neighbours with the same style are one run. Spaces separate runs, so that a font cannot move what follows a gap. */
function runsOf(line: readonly Cell[]): readonly Run[] {
  const runs: Run[] = []
  let open = false
  for (const [column, { text, style }] of line.entries()) {
    const last = runs.at(-1)
    if (text === ' ') open = false
    else if (open && last && sameStyle(last, style)) runs[runs.length - 1] = { ...last, text: last.text + text }
    else {
      runs.push({ ...style, column, text })
      open = true
    }
  }
  return runs
}

const sameStyle = (a: Style, b: Style): boolean => a.bold === b.bold && a.dim === b.dim && a.colour === b.colour
