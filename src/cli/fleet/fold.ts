import { exits } from '../../core/base/errors.ts'
import { count, showDuration } from '../../core/base/format.ts'
import { counting, type EntryReading, isConsequence, messageIn, results } from '../../core/checks/reports/index.ts'
import { markText } from '../../core/protocol/index.ts'
import { foldEqual, withHintsOnce } from '../health/overview.ts'
import { layOut, type ScreenRow } from '../health/rows.ts'
import { factLines } from '../health/screen.ts'
import {
  type Detail,
  hintTexts,
  type Look,
  limited,
  maxName,
  ownCauses,
  type ScreenLine,
  sign,
} from '../health/text.ts'
import { type Mark, styles } from '../render/table.ts'
import { wrap } from '../render/width.ts'
import { fleetExit, isNotReached } from './exit.ts'

type Server = { readonly name: string; readonly url: string }

/** How servers belong together: what is behind what, by name, and what svc does not contact. */
export type FleetShape = {
  /** The command line's words for all of them. */
  readonly label: string
  /** The servers and devices that each server is behind, the nearest first. */
  readonly before: ReadonlyMap<string, readonly string[]>
  readonly devices: readonly string[]
}

/** Failures and warnings of one server that have rows. */
const maxProblems = 5
/** The lines of the problems, and the rows on standard error beside a document. `-v` has no limit. */
const maxLines = 30
const maxReasons = 20

/** One problem of one server. */
type Problem = ScreenRow & {
  readonly code: number
  /** Its host in messages. Undefined if it answered. */
  readonly host: string | undefined
  /** The message about one of several servers, without its address. */
  readonly alike: string
  /** The remedies, and those that name neither address nor port, which several servers share. */
  readonly hints: readonly ScreenLine[]
  readonly sharedHints: readonly ScreenLine[]
}

const states = ['unhealthy', 'not reached', 'not checked', 'with warnings', 'ok'] as const
type State = (typeof states)[number]

/** Keeps of each server only the parts for the table: of one that is ok, nothing. */
export class FleetFold {
  readonly #shape: FleetShape
  readonly #problems: Problem[] = []
  readonly #healthy: ScreenRow[] = []
  readonly #stateOf = new Map<string, State>()
  readonly #codes = new Set<number>()
  readonly #modes = new Set<string>()
  readonly #listsHealthy: boolean
  #isDrill = false
  #hasAnswer = false

  /** `listsHealthy`: with a row for each server that is ok. */
  constructor(shape: FleetShape, { listsHealthy = false }: { readonly listsHealthy?: boolean } = {}) {
    this.#shape = shape
    this.#listsHealthy = listsHealthy
  }

  get exitCode(): number {
    return fleetExit(this.#codes)
  }

  /** Whether any server answered, whatever it said. */
  get hasAnswer(): boolean {
    return this.#hasAnswer
  }

  add(server: Server, readings: readonly EntryReading[]): void {
    const { name } = server
    const state = stateOf(readings)
    this.#stateOf.set(name, state)
    for (const { exitCode, mode, drill, error } of readings) {
      this.#codes.add(exitCode)
      this.#modes.add(mode)
      this.#isDrill ||= drill === true
      this.#hasAnswer ||= error === undefined
    }
    if (state !== 'ok') this.#problems.push(...problemsOf(server, readings))
    else if (this.#listsHealthy) {
      const text = readings.map(({ headline }) => headline).join('; ')
      this.#healthy.push({ mark: 'ok', type: exitText(exits.ok.code), name, check: '', lines: [{ text }] })
    }
  }

  #count(state: State): number {
    return [...this.#stateOf.values()].filter((one) => one === state).length
  }

  /** The table: what is wrong, the worst first, how many are ok, and the verdict. */
  render(detail: Detail, elapsedMs: number, look: Look): string {
    const verdict = this.#verdict(elapsedMs, look)
    if (detail === 'verdict') return verdict.join('\n')
    const failing = detail === 'reasons' && this.exitCode !== exits.ok.code
    const rows = this.#rows().filter(({ mark, type }) => !failing || mark !== 'warn' || type === exitText(3))
    const most = detail === 'reasons' ? maxReasons : maxLines
    const all = [...rows, ...this.#healthy]
    const lines = detail === 'verbose' ? layOut(withHintsOnce(all), look).lines : firstLines(rows, most, look)
    const ok = this.#count('ok')
    const rest = detail === 'usual' && ok > 0 ? [`  ${sign('ok', look)} ${ok} ok`] : []
    return [...lines, ...rest, ...(lines.length === 0 ? [] : ['']), ...verdict].join('\n')
  }

  #verdict(elapsedMs: number, look: Look): readonly string[] {
    const code = this.exitCode
    const warned = this.#count('with warnings')
    const word = code === exits.ok.code ? 'HEALTHY' : code === exits.unhealthy.code ? 'UNHEALTHY' : 'NOT CHECKED'
    const mark: Mark = code === exits.ok.code ? 'ok' : 'fail'
    const beside = code === exits.ok.code && warned > 0 ? `, ${warned} with warnings` : ''
    const notable = states.filter((state) => state !== 'ok' && !(state === 'with warnings' && beside !== ''))
    const facts = [
      this.#shape.label,
      count(this.#stateOf.size, 'server'),
      ...notable.flatMap((state) => (this.#count(state) === 0 ? [] : [`${this.#count(state)} ${state}`])),
      ...this.#modes,
      showDuration(elapsedMs),
    ].filter(Boolean)
    const text = this.#isDrill ? markText(word) : word
    const [first = '', ...others] = factLines(`${text}${beside} `, facts, look)
    const head = look.paint(styles[mark], `${look.marks[mark]} ${first.slice(0, text.length)}`)
    return [`${head}${first.slice(text.length)}`, ...others.map((line) => `  ${line}`)]
  }

  /** The problems as rows, those of one cause as one, the worst first. */
  #rows(): readonly ScreenRow[] {
    const down = new Set([...this.#stateOf].flatMap(([name, state]) => (state === 'not reached' ? [name] : [])))
    const causes = causesOf(this.#shape, new Set(this.#stateOf.keys()), down)
    const byCause = Map.groupBy(this.#problems, ({ name, host }) => (host === undefined ? undefined : causes.get(name)))
    const own = byCause.get(undefined) ?? []
    const behind = [...byCause].flatMap(([cause, problems]): ScreenRow[] => {
      if (cause === undefined) return []
      const first = own.find(({ name, host }) => name === cause && host !== undefined)
      return [first ? withVictims(first, problems) : deviceRow(cause, problems)]
    })
    const blamed = new Set(byCause.keys())
    const single = own.filter(({ name, host }) => host === undefined || !blamed.has(name))
    const atOneAddress = foldEqual(single, (one) =>
      one.host === undefined ? one : { ...one, check: `at ${one.host}`, lines: [{ text: one.alike }] },
    )
    const folded = foldEqual(atOneAddress, (one) =>
      'alike' in one && one.names === undefined ? { ...one, lines: [{ text: one.alike }] } : one,
    )
    return [...behind, ...folded].map(withHints).toSorted(worstFirst)
  }
}

const exitText = (...codes: readonly number[]): string =>
  `exit ${[...new Set(codes)].toSorted((a, b) => a - b).join(', ')}`

function stateOf(readings: readonly EntryReading[]): State {
  const codes = readings.map(({ exitCode }) => exitCode)
  if (codes.includes(exits.unhealthy.code)) return 'unhealthy'
  if (codes.length > 0 && codes.every(isNotReached)) return 'not reached'
  if (codes.some(isNotReached)) return 'unhealthy'
  if (codes.length === 0 || codes.some((code) => code !== exits.ok.code)) return 'not checked'
  return readings.some(({ level }) => level === 'warn') ? 'with warnings' : 'ok'
}

function problemsOf({ name, url }: Server, readings: readonly EntryReading[]): readonly Problem[] {
  const all = readings.flatMap((reading) => rowsOf(name, url, reading))
  // Several types of a server that cannot be reached say the same.
  const distinct = [...new Map(all.map((row) => [`${row.type} ${row.check} ${row.lines[0]?.text}`, row])).values()]
  const rows = distinct.toSorted((a, b) => rank(a) - rank(b)).slice(0, maxProblems)
  const last = rows.at(-1)
  const left = distinct.length - rows.length
  if (!last || left === 0) return rows
  const more = { text: `and ${left} more: svc health --server ${url}`, style: 'dim' } as const
  return rows.with(-1, { ...last, lines: [...last.lines, more] })
}

function rowsOf(name: string, url: string, reading: EntryReading): readonly Problem[] {
  const { type, exitCode, error, level } = reading
  if (level === 'ok') return []
  const base = { type: exitText(exitCode), code: exitCode, name, unit: 'servers' } as const
  if (error) {
    const { hostname: host, port } = new URL(url)
    const text = limited(error.message, short)
    const mark = isNotReached(exitCode) ? 'fail' : 'not checked'
    const alike = text
      .replaceAll(url, 'the server')
      .replaceAll(`The name ${host}`, 'The name of the server')
      .replaceAll(host, 'the server')
    const hints = error.hints.flatMap((hint) => hintTexts(limited(hint, short)))
    const sharedHints = hints
      .map((line) => ({ ...line, text: line.text.replaceAll(url, 'URL') }))
      .filter((line) => !line.text.includes(host) && (port === '' || !line.text.includes(port)))
    const down = isNotReached(exitCode) ? host : undefined
    return [{ ...base, mark, check: '', lines: [{ text }], alike, host: down, hints, sharedHints }]
  }
  const row = (mark: Problem['mark'], check: string, text: string): Problem => ({
    ...base,
    mark,
    check: limited(check, short, maxName),
    lines: [{ text: limited(text, short) }],
    alike: limited(text, short),
    host: undefined,
    hints: [],
    sharedHints: [],
  })
  const bad = counting(results(reading)).filter((one) => one.level !== 'ok' && !isConsequence(one))
  return [
    ...ownCauses(reading).map((cause) => row(level === 'unknown' ? 'fail' : level, type, cause)),
    ...bad.map((one) => row(one.level, [type, one.monitor, one.check].filter(Boolean).join(' '), messageIn(one))),
  ]
}

const short = { more: '…' } as const

/**
 * The cause for each server that could not be reached: a device of which all servers behind it are down, if there
 * are at least two, or a server before it that is down itself. What was not asked explains nothing.
 */
export function causesOf(
  { before, devices }: FleetShape,
  targets: ReadonlySet<string>,
  down: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const isDevice = new Set(devices)
  const links = [...targets].flatMap((name) => (before.get(name) ?? []).map((device) => ({ name, device })))
  const members = Map.groupBy(links, ({ device }) => device)
  const dead = [...members].filter(
    ([device, all]) => isDevice.has(device) && all.length > 1 && all.every(({ name }) => down.has(name)),
  )
  const largest = dead.toSorted(([, a], [, b]) => b.length - a.length).map(([device]) => device)
  return new Map(
    [...down].flatMap((name): readonly (readonly [string, string])[] => {
      const all = before.get(name) ?? []
      // The farthest server explains those between.
      const cause = largest.find((device) => all.includes(device)) ?? all.findLast((one) => down.has(one))
      return cause === undefined ? [] : [[name, cause]]
    }),
  )
}

const namesOf = (problems: readonly Problem[]): readonly string[] => [...new Set(problems.map(({ name }) => name))]

/** The row with its remedies. Those of a row for several servers are those of the first. */
const withHints = (row: ScreenRow | Problem): ScreenRow =>
  'hints' in row ? { ...row, lines: [...row.lines, ...(row.names ? row.sharedHints : row.hints)] } : row

function withVictims(cause: Problem, victims: readonly Problem[]): Problem {
  const names = namesOf(victims)
  const text = `${count(names.length, 'server')} behind it cannot be reached (${exitText(...victims.map(({ code }) => code))})`
  return { ...cause, lines: [...cause.lines, { text, style: 'dim' }], names, sharedHints: cause.hints }
}

function deviceRow(device: string, problems: readonly Problem[]): ScreenRow {
  const names = namesOf(problems)
  const byText = [...Map.groupBy(problems, ({ alike }) => alike)].toSorted(([, a], [, b]) => b.length - a.length)
  const others = byText.length - 1
  const lines = [byText[0]?.[0] ?? '', ...(others > 0 ? [`and ${count(others, 'other message')}`] : [])]
  return {
    mark: 'fail',
    type: exitText(...problems.map(({ code }) => code)),
    name: count(names.length, 'server'),
    check: `behind ${device}`,
    lines: lines.map((text) => ({ text })),
    names,
    unit: 'servers',
  }
}

const marksWorstFirst: readonly ScreenRow['mark'][] = ['fail', 'not checked', 'warn', 'idle', 'ok']
const rank = ({ mark }: Pick<ScreenRow, 'mark'>): number => marksWorstFirst.indexOf(mark)

const worstFirst = (a: ScreenRow, b: ScreenRow): number =>
  rank(a) - rank(b) ||
  (b.names?.length ?? 1) - (a.names?.length ?? 1) ||
  a.type.localeCompare(b.type, undefined, { numeric: true }) ||
  a.name.localeCompare(b.name, undefined, { numeric: true })

/** The first rows that have room, and a line with the number of the others. */
function firstLines(rows: readonly ScreenRow[], most: number, look: Look): readonly string[] {
  for (let visible = Math.min(most, rows.length); ; visible -= 1) {
    const { lines, indent } = layOut(withHintsOnce(rows.slice(0, visible)), look)
    if (lines.length > most && visible > 1) continue
    const left = rows.length - visible
    if (left === 0) return lines
    const more = wrap(`${look.marks.more} ${left} more (-v shows all)`, look.width - indent)
    return [...lines, ...more.map((line) => ' '.repeat(indent) + line)]
  }
}
