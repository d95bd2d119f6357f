import type { Fault } from '../errors.ts'
import { type Dto, ErrorResponse, listsRoles, type ResponseStatus } from '../protocol/index.ts'
import type { Trailing } from './json.ts'

const firstServerError = 500

/**
 * The body of every error; `Errors` is always present (E1). Only server faults carry a correlation id: every refused
 * sign-in must be identical byte for byte (A3). `stackTrace` is set in debug mode only; the transport adds `more` to
 * the Meta.
 */
export const errorResponse = (
  fault: Fault,
  correlationId?: string,
  stackTrace?: string,
  more: Readonly<Record<string, string>> = {},
): ErrorResponse => {
  const meta = {
    ...fault.details.meta,
    ...more,
    ...(correlationId !== undefined && fault.status >= firstServerError ? { CorrelationId: correlationId } : {}),
  }
  const status: ResponseStatus = {
    ErrorCode: fault.errorCode,
    Message: fault.message,
    ...(stackTrace === undefined ? {} : { StackTrace: stackTrace }),
    Errors: fault.details.fields ?? [],
    ...(Object.keys(meta).length === 0 ? {} : { Meta: meta }),
  }
  return { ResponseStatus: status }
}

/**
 * The error of an operation, ready to encode. Operations whose answers list roles add empty lists beside the
 * ResponseStatus (O7).
 */
export const errorAnswer = (response: Dto | undefined, error: ErrorResponse): Trailing =>
  response && listsRoles(response)
    ? { schema: response, value: { AllRoles: [], AllPermissions: [], ...error } }
    : { schema: ErrorResponse, value: error }
