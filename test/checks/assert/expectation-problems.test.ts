import { describe, expect, test } from 'vitest'
import { expectationProblem } from '../../../src/core/checks/assert/expectation.ts'
import type { AnyKind } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import steps from '../../../src/core/checks/kinds/http-steps/index.ts'
import sqlite from '../../../src/core/checks/kinds/sqlite/index.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { withDefaults } from '../../support/engine/run-kind.ts'

const problem = (kind: AnyKind, input: object): string | undefined =>
  kind.validate?.(withDefaults(kind.settings, input) as never)
const url = 'http://127.0.0.1:1/'
const broken = '/fail(ed/'
const unterminatedGroup = 'is not a regular expression (Unterminated group)'

describe('an expectation that can never be evaluated is reported at its place', () => {
  test.each([
    ['json', http, { url, json: { '$.a': broken } }],
    ['xml', http, { url, xml: { '/a': broken } }],
    ['header', http, { url, header: { Server: broken } }],
    ['matches', http, { url, matches: 'fail(ed' }],
    ['a measure', http, { url, measure: [{ name: 'm', path: '$.a', where: { b: broken }, count: { limit: 1 } }] }],
    ['a link', http, { url, links: [{ name: 'l', path: '$.a', json: { '$.b': broken } }] }],
    ['tcp', tcp, { host: 'h', port: 1, expect: broken }],
    ['a query', sqlite, { path: '/srv/jobs.db', queries: [{ name: 'q', sql: 'SELECT 1', expect: broken }] }],
    ['a step', steps, { url, steps: [{ name: 's', path: '/', json: { '$.a': broken } }] }],
    [
      'until',
      steps,
      { url, steps: [{ name: 's', path: '/', until: { expect: { '$.a': broken }, every: 1_000, most: 9 } }] },
    ],
    ['fails', steps, { url, steps: [{ name: 's', path: '/', fails: [{ expect: { '$.a': broken }, says: 'x' }] }] }],
  ] as const)('an invalid pattern, in %s, is reported', (_, kind, input) => {
    expect(problem(kind, input)).toContain(unterminatedGroup)
  })

  test('a comparison without a number is reported, and other text is not', () => {
    expect(expectationProblem('< x')).toBe(
      '< x is not a comparison with a number: write >= 3, or use a /pattern/ for a text that begins this way',
    )
    expect(expectationProblem('>=')).toContain('is not a comparison with a number')
    for (const sound of ['ready', '', '>= 3', '!= x', '= <b>', '/^a{nonce}$/u', '/path/to', '/a/b/', '$' + '{value}'])
      expect(expectationProblem(sound)).toBeUndefined()
  })
})
