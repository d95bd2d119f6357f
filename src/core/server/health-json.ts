import { randomUUID } from 'node:crypto'
import { ErrorResponse, HealthCheckResponse, type NameStyle, type ResponseStatus } from '../protocol/index.ts'
import { encodeJson, type Trailing } from '../protocol/wire/index.ts'
import { SharedText } from './answer.ts'

/** The JSON of an answer, split at the CorrelationId. */
type Halves = { readonly of: HealthCheckResponse; readonly before: string; readonly after: string | Buffer }

/** Texts of more characters are kept as bytes. A shorter one is written in one piece. */
const longText = 16_384

/**
 * Writes health answers as JSON. Answers that share a run differ only in their CorrelationId, so the rest of the text
 * is written once and kept as long as their summaries. A text is reused only for an answer with the identical member
 * objects, so no caller receives text that was written for another view.
 */
export class HealthJson {
  readonly #written = new WeakMap<object, Map<string, Halves>>()
  /** Stands for the CorrelationId while the text is split. It is random, so a monitor's text cannot contain it. */
  readonly #placeholder = randomUUID()

  /** `failed` appends a ResponseStatus with that Meta (H1). */
  write(
    response: HealthCheckResponse,
    failed: boolean,
    style: NameStyle,
    meta?: ResponseStatus['Meta'],
  ): string | SharedText {
    const { CorrelationId: id, MonitorSummaries: summaries } = response
    if (id === undefined || summaries === undefined || meta !== undefined) return whole(response, failed, style, meta)
    const texts = this.#written.get(summaries) ?? new Map<string, Halves>()
    this.#written.set(summaries, texts)
    const key = `${failed} ${style}`
    const existing = texts.get(key)
    const halves =
      existing && haveMembersInCommon(existing.of, response) ? existing : this.#halves(response, failed, style)
    texts.set(key, halves)
    const before = halves.before + JSON.stringify(id)
    const { after } = halves
    return typeof after === 'string' ? before + after : new SharedText([Buffer.from(before), after])
  }

  #halves(response: HealthCheckResponse, failed: boolean, style: NameStyle): Halves {
    const text = whole({ ...response, CorrelationId: this.#placeholder }, failed, style)
    const [before = '', after = ''] = text.split(`"${this.#placeholder}"`)
    return { of: response, before, after: after.length > longText ? Buffer.from(after) : after }
  }
}

const whole = (
  response: HealthCheckResponse,
  failed: boolean,
  style: NameStyle,
  meta?: ResponseStatus['Meta'],
): string => encodeJson(HealthCheckResponse, response, failed ? failureOf(response, meta) : undefined, style)

const names = Object.keys(HealthCheckResponse.fields) as readonly (keyof HealthCheckResponse)[]
const haveMembersInCommon = (a: HealthCheckResponse, b: HealthCheckResponse): boolean =>
  names.every((name) => name === 'CorrelationId' || a[name] === b[name])

/** For clients that keep only the ResponseStatus of an answer that is not 2xx (H1). */
export function failureOf(response: HealthCheckResponse, Meta: ResponseStatus['Meta']): Trailing {
  const errors = (response.MonitorSummaries ?? []).flatMap((summary) =>
    (summary.Results ?? [])
      .filter((result) => result.Status === 'Failure')
      .map((result) => ({
        ErrorCode: 'HealthCheckFailed',
        FieldName: `${summary.MonitorName}/${result.MonitoringName}`,
        Message: result.StatusMessage,
      })),
  )
  const status = { ErrorCode: 'HealthCheckFailed', Message: response.StatusMessage, Errors: errors, Meta }
  return { schema: ErrorResponse, value: { ResponseStatus: status } }
}
