import type { Setting, SettingsSpec } from '../base/settings/index.ts'
import { configurableKinds, hostKind, loadKind } from '../checks/plan/index.ts'
import { ServerType } from '../protocol/index.ts'
import { drillSettings } from '../watch/drill/index.ts'
import { notifySettings, receiverKinds } from '../watch/notify/index.ts'
import { silenceSettings } from '../watch/silences/index.ts'
import { commonSettings, shorthands } from './common.ts'
import type { DocumentPlace } from './document.ts'

/** The names that a svc.yaml may use as keys. */
export type KnownKeys = {
  readonly all: ReadonlySet<string>
  /** Keys whose values may be shown: no setting of that name holds a secret or free text anywhere. */
  readonly plain: ReadonlySet<string>
}

/** Types of settings whose values hold no secret. */
const plainTypes: ReadonlySet<Setting['type']> = new Set([
  'number',
  'integer',
  'flag',
  'duration',
  'bytes',
  'choice',
  'threshold',
])
/** Texts that name something. No URL: its path may be a secret, as that of a webhook. */
const plainTexts: ReadonlySet<string> = new Set(['kind', 'name', 'profile', 'host', 'depth'])
const sections = [
  'types',
  'profiles',
  'serve',
  'auth',
  'notify',
  'silences',
  'drill',
  'exec',
  'include',
  'monitors',
  'without',
  'change',
  'profile',
  ...shorthands,
]

/** Reads the names off the settings of every kind. `more` are those of other sections. */
export async function knownKeys(more: SettingsSpec): Promise<KnownKeys> {
  const kinds = [await loadKind(hostKind), ...(await configurableKinds())]
  const all = new Set<string>([...sections, ...ServerType.values])
  const plain = new Set<string>(['profile', ...shorthands])
  const hiddenNames = new Set<string>()
  const walk = (spec: SettingsSpec): void => {
    for (const [name, setting] of Object.entries(spec)) {
      all.add(name)
      const isPlain = plainTypes.has(setting.type) || (plainTexts.has(name) && setting.type !== 'secret')
      if (isPlain) plain.add(name)
      else hiddenNames.add(name)
      if (setting.type === 'group' || setting.type === 'groups') walk(setting.fields)
    }
  }
  const allKinds = [...receiverKinds, ...kinds]
  for (const { name } of allKinds) all.add(name)
  const specs = allKinds.map(({ settings }): SettingsSpec => settings)
  for (const spec of [commonSettings, more, notifySettings, silenceSettings, drillSettings, ...specs]) walk(spec)
  return { all, plain: new Set([...plain].filter((name) => plainTexts.has(name) || !hiddenNames.has(name))) }
}

/** The longest line of an excerpt, without its line number. */
const maxColumns = 100
const hidden = '…'
/** A long line is scanned no further. */
const maxLine = 2_000

const keyPattern = /^(["']?)([^\s:"'{}[\],#]{1,64})\1\s*:(?=\s|$)/
/** A value without a user, a query or an assignment, which could hold a password or a token. */
const valuePattern = /^(?:"[\w.:/%+ -]{0,80}"|'[\w.:/%+ -]{0,80}'|["']?[\w.:/%+-]{1,80})(?=\s*(?:[,}\]]|$|\s#))/
const wordPattern = /^[A-Za-z_][\w-]{0,63}(?=\s|$)/

/** A line that is one whole entry in braces. Where the syntax is right, no value in it goes on in the next line. */
const entryPattern = /^\s*(?:- +)*\{.*\}\s*$/
/** A value in braces, of which nothing is shown. */
const hiddenPattern = /^(?:(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?=\s*[,}\]])|[^\s"'{}[\],#][^{}[\],#]*(?=[,}\]]))/

/** The visible text of a line, and the column there of a column of the line. */
type Visible = { readonly text: string; readonly columnOf: (column: number) => number }

/**
 * The part of a line that may be shown: its keys, and the values of plain settings. Any other value is hidden, because it
 * may be a password: in an entry in braces it alone, elsewhere all that follows it. With `onlyKnown`, so are unknown
 * keys: where the syntax is wrong, they may be part of a text.
 */
function visiblePart(line: string, keys: KnownKeys, onlyKnown: boolean): Visible {
  const source = line.slice(0, maxLine)
  const isEntry = !onlyKnown && source === line && entryPattern.test(source)
  /** The hidden columns. */
  const gaps: { readonly from: number; readonly to: number }[] = []
  let at = /^\s*(?:- +)*/.exec(source)?.[0].length ?? 0
  const hideRest = (): void => {
    if (source.slice(at).trim() !== '') gaps.push({ from: at, to: source.length })
  }
  for (;;) {
    at += /^[\s[{]*/.exec(source.slice(at))?.[0].length ?? 0
    const rest = source.slice(at)
    const key = keyPattern.exec(rest)
    const name = key?.[2] ?? ''
    if (!key || (onlyKnown && !keys.all.has(name))) {
      const word = wordPattern.exec(rest)?.[0] ?? ''
      if (keys.all.has(word)) at += word.length
      hideRest()
      break
    }
    at += key[0].length
    at += /^\s*/.exec(source.slice(at))?.[0].length ?? 0
    const after = source.slice(at)
    // A map or a list of maps: its keys decide.
    if (/^(?:\[\s*)?\{/.test(after) && keys.all.has(name)) continue
    const plain = keys.plain.has(name) ? valuePattern.exec(after)?.[0] : undefined
    const value = plain ?? (isEntry ? hiddenPattern.exec(after)?.[0] : undefined)
    const next = value && /^\s*([}\]]\s*)*(?:,\s*|$)/.exec(after.slice(value.length))?.[0]
    if (value === undefined || next === undefined) {
      at += plain?.length ?? 0
      hideRest()
      break
    }
    if (plain === undefined) gaps.push({ from: at, to: at + value.length })
    at += value.length + next.length
    if (at >= source.length) break
  }
  let text = ''
  let shownTo = 0
  for (const { from, to } of gaps) {
    text += source.slice(shownTo, from) + hidden
    shownTo = to
  }
  const columnOf = (column: number): number =>
    gaps.reduce((sum, { from, to }) => sum - Math.max(0, Math.min(column, to) - from - (column < to ? 0 : 1)), column)
  return { text: text + source.slice(shownTo), columnOf }
}

/** Controls, bidirectional and invisible characters, which could change what a terminal shows. */
const unsafe = () => /[\p{C}\p{Zl}\p{Zp}]/gu
const wide = () =>
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u

/** The line of a place with a caret below it: two lines, joined by a line feed. */
export function excerpt(text: string, place: DocumentPlace, keys: KnownKeys, onlyKnown: boolean): string {
  const line = (text.split('\n', place.line)[place.line - 1] ?? '').replace(/\r$/, '')
  const { text: part, columnOf } = visiblePart(line, keys, onlyKnown)
  const visible = part.replaceAll('\t', ' ').replace(unsafe(), '�')
  const caret = Math.min(columnOf(place.column - 1), visible.endsWith(hidden) ? visible.length - 1 : visible.length)
  // A long line is shown from a little before the place.
  const from = caret < maxColumns - 10 ? 0 : caret - Math.floor(maxColumns / 2)
  const window = `${from > 0 ? hidden : ''}${visible.slice(from > 0 ? from + 1 : 0)}`
  const cut = window.length > maxColumns ? `${window.slice(0, maxColumns - 1)}${hidden}` : window
  const before = Array.from(cut.slice(0, caret - from), (sign) => (wide().test(sign) ? '  ' : ' ')).join('')
  const label = String(place.line)
  return `${label} | ${cut.trimEnd()}\n${' '.repeat(label.length)} | ${before}^`
}
