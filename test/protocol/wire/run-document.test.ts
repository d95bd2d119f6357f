import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { decodeRun, encodeRun, isRunType } from '../../../src/core/protocol/wire/index.ts'
import { runSchema } from '../../../tools/schemas.ts'
import { measured } from '../../checks/reports/samples.ts'

const { Run: run } = measured
if (!run) throw new Error('The sample has no run')
const [monitor] = run.monitors
if (!monitor) throw new Error('The sample has no monitor')
const [result] = monitor.results

const text = (more: object): string => JSON.stringify({ ...run, ...more })
const faultOf = (body: string): Fault => {
  try {
    decodeRun(body)
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('It was read')
}

describe('the run document', () => {
  test('a document that is written and read back is the same', () => {
    const sent = encodeRun(run)
    expect(sent).toContain('"startedAt":"2026-03-01T03:00:00.000Z"')
    expect(sent).toContain('"measurement":{"value":0.4127341,"unit":"milliseconds","limit":3000,"bound":"atMost"}')
    expect(decodeRun(sent ?? '')).toEqual(run)
  })

  test('a document that is written is valid against the published schema', () => {
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(runSchema())
    expect(validate(JSON.parse(encodeRun(run) ?? ''))).toBe(true)
    expect(validate({ ...JSON.parse(encodeRun(run) ?? ''), version: 2 })).toBe(false)
  })

  test('unknown members are ignored, at any depth', () => {
    const monitors = [{ ...monitor, later: [1], results: [{ ...result, later: { a: 1 } }] }]
    expect(decodeRun(text({ later: true, monitors }))).toEqual({
      ...run,
      monitors: [{ ...monitor, results: [result] }],
    })
  })

  test('a status is never better than those beneath it', () => {
    const monitors = [{ ...monitor, status: 'ok' }]
    const read = decodeRun(text({ status: 'ok', monitors }))
    expect([read.status, read.monitors[0]?.status]).toEqual(['failed', 'failed'])
  })

  test.each([
    ['no JSON', '{"version":1', 'is not JSON'],
    ['a list', '[]', 'is not a JSON object'],
    ['another version', text({ version: 2 }), 'does not have version 1'],
    ['a version as text', text({ version: '1' }), 'does not have version 1'],
    ['no status', text({ status: undefined }), "has no 'status'"],
    ['an unknown status', text({ status: 'fine' }), 'cannot be understood'],
    ['a status by number', text({ status: 1 }), 'cannot be understood'],
    ['a duration as text', text({ durationMs: '12' }), 'cannot be understood'],
    ['a date that is none', text({ startedAt: '2026-02-31T00:00:00Z' }), 'cannot be understood'],
    ['monitors that are not a list', text({ monitors: {} }), 'cannot be understood'],
    ['no monitors', text({ monitors: [] }), 'or no monitors'],
    ['a monitor without results', text({ monitors: [{ ...monitor, results: [] }] }), 'without results'],
    [
      'a result without a check',
      text({ monitors: [{ ...monitor, results: [{ status: 'ok' }] }] }),
      "has no 'monitors.results.check'",
    ],
    [
      'a figure that is text',
      text({ monitors: [{ ...monitor, results: [{ ...result, measurement: { value: '1', unit: 'count' } }] }] }),
      'cannot be understood',
    ],
    ['an infinite figure', text({}).replace('"value":85', '"value":1e999'), 'cannot be understood'],
    [
      'JSON nested deeply',
      text({ later: 0 }).replace('"later":0', `"later":${'['.repeat(99)}${']'.repeat(99)}`),
      'nested too deeply',
    ],
    [
      'too many monitors',
      text({ monitors: Array(5_001).fill({ ...monitor, results: [result] }) }),
      'more than 5000 monitors',
    ],
    [
      'too many results',
      text({ monitors: [{ ...monitor, results: Array(20_001).fill({ check: 'a', status: 'ok' }) }] }),
      'more than 20000 results',
    ],
    [
      'too many details',
      text({ monitors: [{ ...monitor, results: [{ ...result, details: Array(1_001).fill('') }] }] }),
      'too many details',
    ],
    ['a text too long', text({ message: 'x'.repeat(65_537) }), 'more than 65536 characters'],
  ])('K7 %s is an unreadable answer, never a healthy one', (_, body, message) => {
    const fault = faultOf(body)
    expect(fault.fault).toBe('UnreadableAnswer')
    expect(fault.message).toContain(message)
  })

  test('a document that readers would refuse is not written', () => {
    expect(encodeRun({ ...run, message: 'x'.repeat(65_537) })).toBeUndefined()
  })

  test.each([
    ['application/vnd.svc.run+json;version=1', true],
    ['Application/Vnd.svc.run+JSON ; version=2', true],
    ['application/vnd.svc.run+jsonp', false],
    ['application/json; charset=utf-8', false],
  ])('%s is the type of a run: %s', (type, is) => {
    expect(isRunType(type)).toBe(is)
  })
})
