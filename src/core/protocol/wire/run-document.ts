import { Fault, type FieldFault } from '../../base/errors.ts'
import { isObject, tooDeepUnder } from '../../base/json.ts'
import { type Dto, isLoadOf, limits, RunDocument, type RunStatus, runVersion, type Schema, schemaOf } from '../index.ts'
import type { WireValues } from './format.ts'
import { exactRules, parseJsonText, walkDto } from './json-read.ts'
import { readDate } from './scalars.ts'

/**
 * Whether a Content-Type is that of a run document, in any version.
 *
 * @example
 * ```ts
 * isRunType('application/vnd.svc.run+json; charset=utf-8') // true
 * ```
 */
export const isRunType = (contentType: string): boolean =>
  /^\s*application\/vnd\.svc\.run\+json\s*(?:;|$)/i.test(contentType)

/** The limits of a run document. Larger documents are neither written nor read. */
const most = { monitors: 5_000, results: 20_000, details: 1_000, facts: 100, characters: 64 * 1024 } as const

/**
 * A run as JSON: dates in ISO 8601, durations in milliseconds, without unset members. Undefined for a run beyond the
 * limits: the interface's own document then carries it.
 */
export function encodeRun(run: RunDocument): string | undefined {
  return excess(run) === undefined ? JSON.stringify(run) : undefined
}

/** Rules for runs of another svc: values are read exactly as written, without conversion. */
const exact = exactRules((schema, json) => {
  if (schema.kind === 'choice') return schema.values.find((value) => value === json)
  if (typeof json !== 'string') return undefined
  return schema.kind === 'date' ? readDate(json) : json.toWellFormed()
})

const unreadable = (what: string): Fault => new Fault('UnreadableAnswer', `The server's run document ${what}`)

/**
 * Reads a run document from a server. Skips unknown members. A status is never better than the statuses below it: a
 * monitor is as bad as its worst result, a run as its worst monitor, what was not checked is not ok, and a rehearsal never is. Throws `Fault` UnreadableAnswer for any other
 * error; no fault quotes text of the body.
 */
export function decodeRun(text: string): RunDocument {
  if (tooDeepUnder(text, limits.depth) !== undefined) throw unreadable('is nested too deeply')
  const json = parse(text)
  if (!isObject(json)) throw unreadable('is not a JSON object')
  const { version } = json as { readonly version?: unknown }
  if (version !== runVersion) throw unreadable(`does not have version ${runVersion}`)
  const problems: FieldFault[] = []
  const values = walkDto(RunDocument, json, exact, problems)
  const [first] = problems
  if (first) throw unreadable(`cannot be understood: ${first.Message}`)
  const missing = missingIn(RunDocument, values, '')
  if (missing !== undefined) throw unreadable(`has no '${missing}'`)
  const run = values as RunDocument
  const beyond = excess(run)
  if (beyond !== undefined) throw unreadable(beyond)
  // A run that checked nothing is not healthy.
  if (run.monitors.length === 0 || run.monitors.some(({ results }) => results.length === 0)) {
    throw unreadable('has a monitor without results, or no monitors')
  }
  const monitors = run.monitors.map((monitor) => {
    const results = monitor.results.map((result) =>
      result.notChecked !== undefined && result.status === 'ok' ? { ...result, status: 'failed' as const } : result,
    )
    // A warning about the load of the machine counts for nothing.
    const counting = results.filter(({ check, status }) => status === 'failed' || !isLoadOf(monitor, check))
    return { ...monitor, results, status: worst(monitor.status, counting) }
  })
  // A rehearsal is never a success, whatever its results say.
  return { ...run, status: run.drill === true ? 'failed' : worst(run.status, monitors), monitors }
}

function parse(text: string): unknown {
  try {
    return parseJsonText(text)
  } catch {
    // Without a cause: the parser's message quotes the body.
    throw unreadable('is not JSON')
  }
}

const order: Record<RunStatus, number> = { ok: 0, warning: 1, failed: 2 }
const worst = (own: RunStatus, of: readonly { readonly status: RunStatus }[]): RunStatus =>
  of.reduce<RunStatus>((most, { status }) => (order[status] > order[most] ? status : most), own)

/** The first required member that is missing, at any depth. */
function missingIn(schema: Dto, values: WireValues, path: string): string | undefined {
  for (const [name, field] of Object.entries(schema.fields)) {
    const value = values[name]
    if (value === undefined) {
      if (field.kind === 'required') return path + name
      continue
    }
    const missing = missingUnder(schemaOf(field), value, path + name)
    if (missing !== undefined) return missing
  }
  return undefined
}

function missingUnder(schema: Schema, value: unknown, path: string): string | undefined {
  if (schema.kind === 'dto') return missingIn(schema, value as WireValues, `${path}.`)
  if (schema.kind !== 'list') return undefined
  for (const item of value as readonly unknown[]) {
    const missing = missingUnder(schema.item, item, path)
    if (missing !== undefined) return missing
  }
  return undefined
}

/** The limit that a document exceeds, in words. Undefined when it is within all limits. */
function excess(run: RunDocument): string | undefined {
  if (run.monitors.length > most.monitors) return `has more than ${most.monitors} monitors`
  const results = run.monitors.flatMap((monitor) => monitor.results)
  if (results.length > most.results) return `has more than ${most.results} results`
  if (results.some(({ details }) => (details?.length ?? 0) > most.details)) return 'has a result with too many details'
  if (results.some(({ facts }) => Object.keys(facts ?? {}).length > most.facts))
    return 'has a result with too many facts'
  return hasLongText(run) ? `has a text of more than ${most.characters} characters` : undefined
}

function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > most.characters
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some(hasLongText)
}
