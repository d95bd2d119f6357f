import type { Fault } from '../errors.ts'
import { type Dto, ErrorResponse, listsRoles, type ResponseStatus } from '../protocol/index.ts'
import type { Trailing } from './json.ts'

const firstServerError = 500

/**
 * E1: the body of every error; `Errors` is always there. A correlation id is told only with faults of the server: a
 * refused sign-in must read the same, byte for byte, each time (A3). `stackTrace` is the debug switch's, `more` what the
 * transport adds to the Meta.
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
 * An operation's error as something to encode: the operations whose answers list roles say that there are none
 * beside the ResponseStatus (O7).
 */
export const errorAnswer = (response: Dto | undefined, error: ErrorResponse): Trailing =>
  response && listsRoles(response)
    ? { schema: response, value: { AllRoles: [], AllPermissions: [], ...error } }
    : { schema: ErrorResponse, value: error }
