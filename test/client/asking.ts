import { expect } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type ClientOptions, openClient } from '../../src/core/client/index.ts'
import type { HealthCheckRequest, HealthCheckResponse } from '../../src/core/protocol/index.ts'
import type { Call } from '../../src/core/protocol/service/service.ts'
import { farMs } from '../support/suite/until.ts'

export const callWith = (over: Partial<Call> = {}): Call => ({
  caller: { kind: 'local', account: 'tester' },
  correlationId: 'c0ffee-1',
  signal: new AbortController().signal,
  timeoutMs: farMs,
  ...over,
})

export const basicSql: HealthCheckRequest = { ExecutionMode: 'Basic', ServerType: 'Sql' }
export const clientOf = (baseUrl: string, over: Partial<ClientOptions> = {}) =>
  openClient({ baseUrl, userAgent: 'svc/test', env: {}, ...over })

/** The health of a server on this port of 127.0.0.1, or at this URL. */
export const healthAt = (
  at: number | string,
  call: Partial<Call> = {},
  options: Partial<ClientOptions> = {},
): Promise<HealthCheckResponse> =>
  clientOf(typeof at === 'number' ? `http://127.0.0.1:${at}` : at, options).healthCheck(basicSql, callWith(call))

/** The Fault with which something rejects or throws; a success is a failed test. */
export async function faultOf(attempt: Promise<unknown> | (() => unknown)): Promise<Fault> {
  try {
    await (typeof attempt === 'function' ? attempt() : attempt)
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  return expect.fail('this should have been a Fault')
}

/** All that a Fault would show anyone. */
export const faultText = (fault: Fault): string =>
  [fault.message, ...(fault.details.hints ?? []), JSON.stringify(fault.details), String(fault.stack)].join('\n')
