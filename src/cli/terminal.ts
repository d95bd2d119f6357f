import { fstatSync } from 'node:fs'
import { styleText } from 'node:util'

export type ColourFlag = 'auto' | 'always' | 'never'

type Environment = Readonly<Record<string, string | undefined>>

const isSet = (value: string | undefined): value is string => value !== undefined && value !== ''
const off = (value: string): boolean => value === '0' || value.toLowerCase() === 'false'

/**
 * Decides about colour for one stream: first the flag, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then whether
 * it is a terminal. An empty variable counts as not set (no-color.org).
 */
export function wantsColour(flag: ColourFlag, env: Environment, isTTY: boolean): boolean {
  if (flag !== 'auto') return flag === 'always'
  if (isSet(env['NO_COLOR'])) return false
  if (isSet(env['FORCE_COLOR'])) return !off(env['FORCE_COLOR'])
  if (isSet(env['CLICOLOR_FORCE'])) return !off(env['CLICOLOR_FORCE'])
  if (!isTTY || env['TERM'] === 'dumb') return false
  return !(isSet(env['CLICOLOR']) && off(env['CLICOLOR']))
}

const flags: readonly string[] = ['auto', 'always', 'never'] satisfies readonly ColourFlag[]
let chosen: ColourFlag = 'auto'

/**
 * Reads `--color` before the command line is parsed, so that parse errors are coloured too. The choice applies to the
 * whole process. The parser refuses wrong values.
 */
export function chooseColour(argv: readonly string[]): void {
  const end = argv.indexOf('--')
  const own = end === -1 ? argv : argv.slice(0, end)
  const at = own.findLastIndex((word) => word === '--color' || word.startsWith('--color='))
  const value = own[at]?.startsWith('--color=') ? own[at].slice('--color='.length) : own[at + 1]
  const match = flags.find((flag) => at !== -1 && flag === value?.toLowerCase())
  chosen = (match as ColourFlag | undefined) ?? 'auto'
}

const descriptors = { stdout: 1, stderr: 2 } as const

/** Whether this stream is a terminal. Pipes and files are recognized without creating the stream, which takes 4 ms. */
export function isTerminal(name: keyof typeof descriptors): boolean {
  try {
    if (!fstatSync(descriptors[name]).isCharacterDevice()) return false
  } catch {
    // Node's stream may still know.
  }
  return process[name].isTTY === true
}

/** Whether to colour one stream of this process. */
export const useColour = (stream: { readonly isTTY?: boolean }): boolean =>
  wantsColour(chosen, process.env, stream.isTTY === true)

type Format = Exclude<Parameters<typeof styleText>[0], readonly unknown[]>
const styles = {
  good: ['green'],
  caution: ['yellow'],
  bad: ['bold', 'red'],
  strong: ['bold'],
  dim: ['dim'],
} satisfies Record<string, Format[]>
export type Style = keyof typeof styles

/** Styles text, or returns it unchanged. `wantsColour` has decided already, so Node does not decide again. */
export type Paint = (style: Style | undefined, text: string) => string

export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    !colour || style === undefined || text === '' ? text : styleText(styles[style], text, { validateStream: false })

/** True when the terminal can show `✓`, `✗`, `·` and `…`; otherwise ASCII replaces them. */
export function showsUnicode(env: Environment, platform: NodeJS.Platform): boolean {
  if (platform === 'win32') {
    return (
      isSet(env['WT_SESSION']) ||
      isSet(env['TERM_PROGRAM']) ||
      env['TERM'] === 'xterm-256color' ||
      isSet(env['ConEmuTask'])
    )
  }
  // The Linux console has only 512 glyphs, without these.
  if (env['TERM'] === 'linux') return false
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(isSet)
  return locale === undefined || /utf-?8/i.test(locale)
}

/**
 * Shows one line on a terminal's stderr while something takes long, and removes it at the end. Shows nothing in a pipe,
 * in CI or under TERM=dumb. With ACCESSIBLE=1 the line does not move.
 */
export function progress(
  label: string,
  enabled: boolean,
): {
  /** Whether a line is shown. */
  readonly live: boolean
  readonly update: (text: string) => void
  readonly stop: () => void
} {
  const still = Boolean(process.env.ACCESSIBLE)
  if (!enabled || process.env.CI || process.env.TERM === 'dumb' || !isTerminal('stderr'))
    return { live: false, update: () => {}, stop: () => {} }
  const stream = process.stderr
  const started = performance.now()
  let text = label
  let drawn = false
  const draw = (): void => {
    const seconds = ((performance.now() - started) / 1_000).toFixed(1)
    const line = still ? `${text} …` : `${text} … ${seconds} s`
    stream.write(`\r\u001b[2K${line.slice(0, Math.max(20, (stream.columns ?? 80) - 1))}`)
    drawn = true
  }
  // Fast operations need no line.
  const first = setTimeout(draw, 250)
  const timer = still ? undefined : setInterval(draw, 200)
  return {
    live: true,
    update: (next) => {
      text = next
      if (drawn) draw()
    },
    stop: () => {
      clearTimeout(first)
      clearInterval(timer)
      if (drawn) stream.write('\r\u001b[2K')
    },
  }
}
