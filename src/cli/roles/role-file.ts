import { open } from 'node:fs/promises'
import { Fault, type FieldFault } from '../../core/base/errors.ts'
import { fileProblem } from '../../core/base/file-errors.ts'
import { copyOfShare, isOnShare, problemOnShare, readFromShare } from '../../core/base/files/index.ts'
import { count } from '../../core/base/format.ts'
import { nameMistake } from '../../core/base/names.ts'
import { nearestHint } from '../../core/base/suggest.ts'
import { neverExpires } from '../../core/protocol/index.ts'
import type { RoleChange } from './role-change.ts'

/** One change in a file, with its row number. */
export type FileChange = RoleChange & { readonly row: number }

const columns = ['UserName', 'Action', 'Roles', 'Permissions', 'Expires'] as const
type Column = (typeof columns)[number]
const actions = ['assign', 'unassign'] as const

const maxBytes = 10 * 1024 * 1024
const maxRows = 10_000
/** The limits of a server (S4). */
const maxNames = 256
const maxCharacters = 128

type Raw = { readonly row: number; readonly fields: Readonly<Partial<Record<Column, unknown>>> }
type Problem = { readonly row: number; readonly column?: Column; readonly message: string }

/**
 * Reads the changes in a CSV or JSON file and validates all of them before any is made. `action` applies to rows
 * without one. Throws Fault `Local` with every problem, by row and column. Rows count as in a spreadsheet (the header
 * is 1), entries of a JSON list from 1.
 */
export async function readRoleFile(
  file: string,
  action: RoleChange['action'],
  signal: AbortSignal,
): Promise<readonly FileChange[]> {
  const content = await contentOf(file, signal)
  if (content.trim() === '') throw bad(file, 'is empty')
  const isJson = /\.json$/i.test(file) || (!/\.csv$/i.test(file) && /^\s*[[{]/.test(content))
  const raws = isJson ? fromJson(file, content) : await fromCsv(file, content)
  if (raws.length === 0) throw bad(file, 'contains no rows', ['A header row alone changes nothing.'])
  if (raws.length > maxRows) throw bad(file, `contains ${raws.length} rows; the maximum is ${maxRows}`)
  const changes: FileChange[] = []
  const problems: Problem[] = []
  for (const raw of raws) {
    const validated = validate(raw, action)
    if ('change' in validated) changes.push(validated.change)
    else problems.push(...validated.problems)
  }
  if (problems.length > 0) throw refused(file, problems, isJson ? 'entry' : 'row')
  return changes
}

async function contentOf(file: string, signal: AbortSignal): Promise<string> {
  const bytes = isOnShare(file) ? await onShare(file, signal) : await onDisk(file)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw bad(file, 'is not UTF-8 text', ['In a spreadsheet program, save it as "CSV UTF-8".'])
  }
}

async function onDisk(file: string): Promise<Buffer> {
  try {
    const handle = await open(file)
    try {
      const { size } = await handle.stat()
      if (size > maxBytes) throw bad(file, `is larger than ${maxBytes / 1024 / 1024} MiB`)
      return await handle.readFile()
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw bad(file, fileProblem(error))
  }
}

async function onShare(file: string, signal: AbortSignal): Promise<Buffer> {
  try {
    return await readFromShare(file, maxBytes, signal)
  } catch (error) {
    signal.throwIfAborted()
    throw bad(file, problemOnShare(error), [copyOfShare])
  }
}

async function fromCsv(file: string, content: string): Promise<readonly Raw[]> {
  const { csvTables } = await import('../../core/protocol/wire/index.ts')
  const { readCsvTable } = await csvTables()
  let table: ReturnType<typeof readCsvTable>
  try {
    table = readCsvTable(content)
  } catch (error) {
    if (error instanceof Fault) throw bad(file, error.message, error.details.hints)
    throw error
  }
  const [only = ''] = table.columns
  if (table.columns.length === 1 && /[;\t]/.test(only)) {
    throw bad(file, `row 1: the cells are separated by ${only.includes(';') ? 'semicolons' : 'tabs'}, not by commas`, [
      'In a spreadsheet program, save it as comma-separated CSV.',
    ])
  }
  const columns = table.columns.map((name) => columnNamed(file, name))
  if (!columns.includes('UserName')) throw bad(file, 'row 1: the column UserName is missing', [whatColumns])
  const { readNames } = await csvTables()
  return table.rows.map(({ row, cells }) => {
    const fields: Partial<Record<Column, unknown>> = {}
    table.columns.forEach((name, at) => {
      const column = columns[at]
      const cell = (cells.get(name) ?? '').trim()
      if (column === undefined || cell === '') return
      fields[column] = column === 'Roles' || column === 'Permissions' ? (readNames(cell) ?? cell) : cell
    })
    return { row, fields }
  })
}

function fromJson(file: string, content: string): readonly Raw[] {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch (error) {
    throw bad(file, `is not valid JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (!Array.isArray(value)) throw bad(file, 'must be a JSON list of changes', [example])
  return value.map((entry: unknown, at) => {
    const row = at + 1
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
      throw bad(file, `entry ${row} is not an object`, [example])
    }
    const fields: Partial<Record<Column, unknown>> = {}
    for (const [name, raw] of Object.entries(entry)) {
      const column = columnNamed(file, name, `entry ${row}`)
      if (column !== undefined && Object.hasOwn(fields, column)) throw bad(file, `entry ${row}: ${column} occurs twice`)
      if (column !== undefined && raw !== null) fields[column] = raw
    }
    return { row, fields }
  })
}

const whatColumns = `Columns: ${columns.join(', ')}`
const example = '[{"UserName": "bob", "Action": "assign", "Roles": ["Ops"], "Permissions": []}]'

/** Finds a column in any letter case. Unknown columns are refused: `Role` for `Roles` would drop every role. */
function columnNamed(file: string, name: string, place = 'row 1'): Column | undefined {
  if (name === '') return undefined
  const column = columns.find((each) => each.toLowerCase() === name.toLowerCase())
  if (column !== undefined) return column
  throw bad(file, `${place}: unknown column "${name}"`, [...nearestHint(name, columns), whatColumns])
}

type Judged = { readonly change: FileChange } | { readonly problems: readonly Problem[] }

function validate({ row, fields }: Raw, fallback: RoleChange['action']): Judged {
  const problems: Problem[] = []
  const say = (column: Column, message: string): void => {
    problems.push({ row, column, message })
  }
  const userName = typeof fields.UserName === 'string' ? fields.UserName.trim() : ''
  if (fields.UserName !== undefined && typeof fields.UserName !== 'string') say('UserName', 'must be text')
  else if (userName === '') say('UserName', 'is empty')
  else if (userName.length > maxCharacters) say('UserName', `is longer than ${maxCharacters} characters`)
  const subject =
    fields.Action === undefined
      ? fallback
      : typeof fields.Action === 'string'
        ? fields.Action
        : JSON.stringify(fields.Action)
  const action = actions.find((each) => each === subject.trim().toLowerCase())
  if (action === undefined) say('Action', `"${subject}" is neither assign nor unassign`)
  const listOf = (column: 'Roles' | 'Permissions'): readonly string[] => {
    const names = namesOf(fields[column], (message) => say(column, message))
    // Names that break the rules can be removed, because a store may contain some.
    const mistake = action === 'assign' ? names.map(nameMistake).find((each) => each !== undefined) : undefined
    if (mistake !== undefined) say(column, `contains a name that ${mistake}`)
    return names
  }
  const roles = listOf('Roles')
  const permissions = listOf('Permissions')
  const expires = typeof fields.Expires === 'string' ? fields.Expires.trim() : undefined
  if (fields.Expires !== undefined && !expires) say('Expires', 'must be text')
  else if (expires !== undefined && action === 'unassign') say('Expires', 'has a meaning for assign only')
  else if (expires !== undefined && !isExpiry(expires)) {
    say(
      'Expires',
      `${JSON.stringify(expires.slice(0, 60))} is neither an instant with a zone (2026-11-28T18:00:00Z), nor a duration (PT2H), nor never`,
    )
  }
  if (problems.length === 0 && roles.length + permissions.length === 0) {
    problems.push({ row, message: 'Roles and Permissions are both empty' })
  }
  return problems.length > 0 || action === undefined
    ? { problems }
    : { change: { row, action, userName, roles, permissions, ...(expires === undefined ? {} : { expires }) } }
}

/** Whether a server of svc reads a text as an end. Whether that has passed is for its clock to say. */
const isExpiry = (text: string): boolean =>
  text.toLowerCase() === neverExpires ||
  /^P(?=[\dT])(?:\d{1,6}D)?(?:T(?=\d)(?:\d{1,8}H)?(?:\d{1,9}M)?(?:\d{1,11}S)?)?$/.test(text) ||
  (/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/i.test(text) &&
    !Number.isNaN(Date.parse(text)))

/** Blanks around a name only format the list and are removed. */
function namesOf(value: unknown, say: (message: string) => void): readonly string[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) {
    say(`${JSON.stringify(value).slice(0, 60)} is not a list; write [Admin,Ops] in CSV, ["Admin", "Ops"] in JSON`)
    return []
  }
  const raw = value.map((name: unknown) => (typeof name === 'string' ? name.trim() : undefined))
  if (raw.some((name) => name === undefined)) say('contains a value that is not text')
  else if (raw.some((name) => name === '')) say('contains an empty name')
  else if (raw.length > maxNames) say(`contains more than ${maxNames} names`)
  else if (raw.some((name) => (name?.length ?? 0) > maxCharacters)) {
    say(`contains a name longer than ${maxCharacters} characters`)
  } else return raw.filter((name) => name !== undefined)
  return []
}

const bad = (file: string, what: string, hints: readonly string[] = []): Fault =>
  new Fault('Local', `${file}${/^(row|entry) \d/.test(what) ? ', ' : ' '}${what}`, {
    hints: [...hints, 'Nothing was changed.'],
  })

/** Maximum number of problems listed; the others are counted. */
const maxReported = 20

function refused(file: string, problems: readonly Problem[], unit: string): Fault {
  const lines = problems.slice(0, maxReported).map(
    ({ row, column, message }): FieldFault => ({
      ErrorCode: 'InvalidRow',
      FieldName: `${unit} ${row}${column === undefined ? '' : `, ${column}`}`,
      Message: message,
    }),
  )
  const { length } = problems
  const more = length > maxReported ? [`… and ${length - maxReported} more.`] : []
  return new Fault('Local', `${file} has ${count(length, 'error')}`, {
    fields: lines,
    hints: [...more, 'Nothing was changed.'],
  })
}
