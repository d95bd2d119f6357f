import { expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { HealthCheckRequest } from '../../src/core/protocol/index.ts'
import { failing, healthy, openSite, withSite } from '../server/site.ts'
import { callWith, clientOf, faultOf } from './asking.ts'

const request: HealthCheckRequest = {
  ExecutionMode: 'Standard',
  ServerType: 'Sql',
  IncludeServerStateInformation: true,
  SuppressErrorCodes: false,
}
const at = (port: number): string => `http://127.0.0.1:${port}`

test('the server receives each request and the client each answer unchanged', async () => {
  const call = callWith({ correlationId: 'abc-1', fresh: true, calledByPeer: true })
  const endedNow = { ...healthy(call), ExecutionMetrics: { EndDateTime: new Date() } }
  await withSite({ health: async () => endedNow }, async ({ port, calls }) => {
    expect(await clientOf(at(port)).healthCheck(request, call)).toEqual(endedNow)
    expect(calls).toHaveLength(1)
    expect(calls[0]?.request).toEqual(request)
    expect(calls[0]?.call).toMatchObject({ correlationId: 'abc-1', fresh: true, calledByPeer: true })
  })
})

test('H1 a failing answer of the server is an answer, with the age of its run', async () => {
  const health = async (_: unknown, call: Parameters<typeof failing>[0]) => {
    call.note?.({ ageSeconds: 4, runId: 'run-1' })
    return failing(call)
  }
  const { port } = await openSite({ health })
  const ages: number[] = []
  const call = callWith({ note: ({ ageSeconds }) => void ages.push(ageSeconds) })
  expect(await clientOf(at(port)).healthCheck(request, call)).toEqual(failing(call))
  expect(await clientOf(at(port)).healthCheck({ ...request, SuppressErrorCodes: true }, call)).toEqual(failing(call))
  expect(ages).toEqual([4, 4])
})

test.each([
  [new Fault('Unavailable', 'Too busy', { retryAfter: 7 }), 'Unavailable', 8],
  [new Fault('TooManyRequests', undefined, { retryAfter: 7 }), 'TooManyRequests', 8],
  [new Fault('BadRequest', 'Not so'), 'BadRequest', 9],
  [new Fault('Forbidden'), 'Forbidden', 5],
  [new Error('a defect: secret-path'), 'ServerError', 8],
] as const)('a fault of the server arrives with its type: %s', async (thrown, fault, exit) => {
  const health = async (): Promise<never> => {
    throw thrown
  }
  const { port } = await openSite({ health })
  const error = await faultOf(clientOf(at(port)).healthCheck(request, callWith()))
  expect([error.fault, error.exitCode]).toEqual([fault, exit])
  expect(error.details.retryAfter).toBe(thrown instanceof Fault ? thrown.details.retryAfter : undefined)
  expect(error.message).not.toContain('secret-path')
})

test('C7 a wrong path and operations that are missing are reported as such', async () => {
  const { port } = await openSite({})
  const lost = await faultOf(clientOf(`${at(port)}/nowhere`).healthCheck(request, callWith()))
  expect([lost.fault, lost.exitCode]).toEqual(['NoSuchOperation', 9])
  const absent = await faultOf(clientOf(at(port)).assignRoles({ UserName: 'bob' }, callWith()))
  expect([absent.fault, absent.exitCode]).toEqual(['NotImplemented', 9])
})
