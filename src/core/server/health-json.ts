import { randomUUID } from 'node:crypto'
import { ErrorResponse, HealthCheckResponse, type NameStyle, type ResponseStatus } from '../protocol/index.ts'
import { encodeJson } from '../wire/index.ts'

/** An answer's JSON but for the CorrelationId, which stands between the two halves. */
type Halves = { readonly of: HealthCheckResponse; readonly before: string; readonly after: string }

/** Runs remembered, and the shapes of one run: flags and views make a few. */
const mostRuns = 64
const mostShapes = 8

/**
 * Writes health answers as JSON. Answers that share a run differ in the CorrelationId, in the flags and
 * in what the caller may see; each shape is written once. A remembered text is used only for an answer
 * that equals the one it was written from in every part, so nobody is told what was meant for others.
 */
export class HealthJson {
  readonly #runs = new Map<string, Halves[]>()
  /** Stands for the CorrelationId while the halves are made; no text of a monitor holds it by chance. */
  readonly #placeholder = randomUUID()

  /** `failed` puts a ResponseStatus behind the answer (H1), with that Meta. `runId` only says where to look. */
  write(
    response: HealthCheckResponse,
    failed: boolean,
    runId: string | undefined,
    style: NameStyle,
    meta?: ResponseStatus['Meta'],
  ): string {
    const id = response.CorrelationId
    if (runId === undefined || id === undefined || meta !== undefined) return whole(response, failed, style, meta)
    const key = `${runId} ${failed} ${style}`
    const known = this.#runs.get(key)?.find(({ of }) => sameButId(of, response))
    const halves = known ?? this.#remember(key, response, failed, style)
    return halves === undefined ? whole(response, failed, style) : halves.before + JSON.stringify(id) + halves.after
  }

  #remember(key: string, response: HealthCheckResponse, failed: boolean, style: NameStyle): Halves | undefined {
    const text = whole({ ...response, CorrelationId: this.#placeholder }, failed, style)
    const [before = '', after] = text.split(`"${this.#placeholder}"`)
    if (after === undefined) return undefined
    const halves = { of: response, before, after }
    const shapes = this.#runs.get(key) ?? []
    if (!this.#runs.has(key) && this.#runs.size >= mostRuns) this.#runs.clear()
    if (shapes.length >= mostShapes) shapes.length = 0
    shapes.push(halves)
    this.#runs.set(key, shapes)
    return halves
  }
}

const whole = (
  response: HealthCheckResponse,
  failed: boolean,
  style: NameStyle,
  meta?: ResponseStatus['Meta'],
): string =>
  encodeJson(
    HealthCheckResponse,
    response,
    failed ? { schema: ErrorResponse, value: failure(response, meta) } : undefined,
    style,
  )

const sameButId = (a: HealthCheckResponse, b: HealthCheckResponse): boolean => {
  for (const name of names) if (name !== 'CorrelationId' && !same(a[name], b[name])) return false
  return true
}
const names = Object.keys(HealthCheckResponse.fields) as readonly (keyof HealthCheckResponse)[]

/** Equal in every part. */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (a instanceof Date) return b instanceof Date && a.getTime() === b.getTime()
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => same(item, b[i]))
  const left = a as Readonly<Record<string, unknown>>
  const right = b as Readonly<Record<string, unknown>>
  const keys = Object.keys(left)
  return keys.length === Object.keys(right).length && keys.every((key) => same(left[key], right[key]))
}

/** H1: for clients that keep only the ResponseStatus of an answer that is not 2xx. */
function failure(response: HealthCheckResponse, Meta: ResponseStatus['Meta']): ErrorResponse {
  const errors = (response.MonitorSummaries ?? []).flatMap((summary) =>
    (summary.Results ?? [])
      .filter((result) => result.Status === 'Failure')
      .map((result) => ({
        ErrorCode: 'HealthCheckFailed',
        FieldName: `${summary.MonitorName}/${result.MonitoringName}`,
        Message: result.StatusMessage,
      })),
  )
  return {
    ResponseStatus: { ErrorCode: 'HealthCheckFailed', Message: response.StatusMessage, Errors: errors, Meta },
  }
}
