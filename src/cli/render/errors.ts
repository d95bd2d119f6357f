import { Fault, type FilePlace } from '../../core/base/errors.ts'
import { sanitizeLine, sanitizeText } from '../../core/base/sanitize.ts'
import type { ReportedError } from '../../core/checks/reports/index.ts'
import { painter, type Style } from '../io/terminal.ts'
import { anyObject, flag, integer, listOf, objectOf, optional, string, strings } from './document.ts'
import { wrap } from './width.ts'

/** An error for people and for scripts, both from the same allow-list. */
export const renderError = { text, json }

type TextOptions = {
  readonly colour: boolean
  readonly target?: string | undefined
  /** Columns of the terminal. Without it, lines are not wrapped. */
  readonly width?: number | undefined
}

/** The failure, its reason and the next step, which is the last line: for stderr, without a final line feed. */
function text(error: unknown, options: TextOptions): string {
  const paint = painter(options.colour)
  const { message, target, hints, responseStatus } = reported(error, options.target)
  const fields = (responseStatus?.Errors ?? []).flatMap(({ FieldName, Message }) =>
    !Message || message.includes(Message) ? [] : [FieldName ? `${FieldName}: ${Message}` : Message],
  )
  const columns = Math.max(20, (options.width ?? Number.POSITIVE_INFINITY) - 4)
  const broken = (line: string, style?: Style): readonly string[] =>
    wrap(line, columns).map((part, at) => (at === 0 ? '  ' : '    ') + paint(style, part))
  const where = target && !message.includes(target) ? broken(`at ${target}`, 'dim') : []
  const [first = '', ...rest] = wrap(message, columns - 3)
  return [
    `${paint('bad', 'Error:')} ${first}`,
    ...rest.map((line) => `  ${line}`),
    ...fields.flatMap((line) => broken(line)),
    ...where,
    // A terminal wraps a command by itself, and it can still be copied in one piece.
    ...hints.flatMap((hint) => hint.split('\n')).flatMap((line) => (isCommand(line) ? [`  ${line}`] : broken(line))),
  ].join('\n')
}

const isCommand = (hint: string): boolean => /\bsvc [a-z-]|^\s*\d* \|/.test(hint)

/** The JSON Schema of a reported error. Its ResponseStatus is that of the server. */
export const errorShape = objectOf({
  code: string,
  exitCode: integer,
  message: string,
  target: optional(string),
  hints: strings,
  responseStatus: optional(anyObject),
  drill: optional(flag),
  file: optional(string),
  line: optional(integer),
  column: optional(integer),
  mistakes: optional(listOf(objectOf({ file: string, line: integer, column: integer, message: string }))),
})

/** The single JSON value on stdout when a command fails under `--json`, and an Entry's Error. */
function json(error: unknown, target?: string): { readonly error: ReportedError } {
  return { error: reported(error, target) }
}

/**
 * Takes only the public parts of an error: no stack, no cause, no request header. An error that is no
 * Fault is a defect of ours.
 */
function reported(error: unknown, target: string | undefined): ReportedError {
  const place = target === undefined || target === '' ? {} : { target: sanitizeLine(target) }
  if (!(error instanceof Fault)) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
    const hints = ['This is a defect of svc. Run the command again with --debug and report what it prints.']
    const message = `svc failed unexpectedly: ${sanitizeLine(reason)}`
    return { code: 'InternalServerError', exitCode: 1, message, ...place, hints }
  }
  const { fields = [], hints = [], remoteStatus, places = [], drill } = error.details
  const code = sanitizeLine(error.errorCode)
  const message = sanitizeLine(error.message)
  const Errors = fields.map((field) => ({
    ErrorCode: sanitizeLine(field.ErrorCode),
    FieldName: sanitizeLine(field.FieldName),
    Message: sanitizeLine(field.Message),
  }))
  const status =
    remoteStatus === undefined && fields.length === 0
      ? {}
      : { responseStatus: { ErrorCode: code, Message: message, Errors } }
  return {
    code,
    exitCode: error.exitCode,
    message,
    ...place,
    hints: hints.map(sanitizeText),
    ...status,
    ...(drill ? { drill } : {}),
    ...mistakesOf(places),
  }
}

/** The place of the first mistake in a file, and all of them when there are several. */
function mistakesOf(places: readonly FilePlace[]): Pick<ReportedError, 'file' | 'line' | 'column' | 'mistakes'> {
  const [first] = places
  if (!first) return {}
  const { file, line, column } = first
  const mistakes = places.map((place) => ({
    ...place,
    file: sanitizeLine(place.file),
    message: sanitizeLine(place.message),
  }))
  return { file: sanitizeLine(file), line, column, ...(mistakes.length > 1 ? { mistakes } : {}) }
}
