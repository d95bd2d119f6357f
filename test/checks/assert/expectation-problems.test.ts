import { describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { expectationProblem, patternMismatch } from '../../../src/core/checks/assert/expectation.ts'
import type { AnyKind } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import steps from '../../../src/core/checks/kinds/http-steps/index.ts'
import sqlite from '../../../src/core/checks/kinds/sqlite/index.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { withDefaults } from '../../support/engine/run-kind.ts'

const problem = (kind: AnyKind, input: object): string | undefined =>
  readSettings(kind.settings, input, { env: {}, folder: '/' }).problems[0]?.message ??
  kind.validate?.(withDefaults(kind.settings, input) as never)
const url = 'http://127.0.0.1:1/'
const broken = '/fail(ed/'
const unterminatedGroup = 'is not a regular expression (Unterminated group)'

/** Each place of an expectation. */
const places: readonly (readonly [string, AnyKind, (text: string) => object])[] = [
  ['json', http, (text) => ({ url, json: { '$.a': text } })],
  ['xml', http, (text) => ({ url, xml: { '/a': text } })],
  ['header', http, (text) => ({ url, header: { Server: text } })],
  ['version', http, (text) => ({ url, version: { expected: text } })],
  [
    'a measure',
    http,
    (text) => ({ url, measure: [{ name: 'm', path: '$.a', where: { b: text }, count: { limit: 1 } }] }),
  ],
  ['a link', http, (text) => ({ url, links: [{ name: 'l', path: '$.a', json: { '$.b': text } }] })],
  ['a query', sqlite, (text) => ({ path: '/srv/jobs.db', queries: [{ name: 'q', sql: 'SELECT 1', expect: text }] })],
  ['a step', steps, (text) => ({ url, steps: [{ name: 's', path: '/', json: { '$.a': text } }] })],
  [
    'until',
    steps,
    (text) => ({ url, steps: [{ name: 's', path: '/', until: { expect: { '$.a': text }, every: 1_000, most: 9 } }] }),
  ],
  [
    'fails',
    steps,
    (text) => ({ url, steps: [{ name: 's', path: '/', fails: [{ expect: { '$.a': text }, says: 'x' }] }] }),
  ],
]

describe('an expectation that can never be evaluated is reported at its place', () => {
  test.each(places)('an invalid pattern, in %s, is reported', (_, kind, inputOf) => {
    expect(problem(kind, inputOf(broken))).toContain(unterminatedGroup)
  })

  test.each([
    ['matches', http, { url, matches: 'fail(ed' }],
    ['tcp', tcp, { host: 'h', port: 1, expect: broken }],
  ] as const)('an invalid pattern, in %s, is reported', (_, kind, input) => {
    expect(problem(kind, input)).toContain(unterminatedGroup)
  })

  test.each(places)('H43 a comparison with a pattern, in %s, is reported with the way out', (_, kind, inputOf) => {
    expect(problem(kind, inputOf('!= /pass/'))).toContain(
      '!= /pass/ compares with this text, not with the pattern: write {not: /pass/}',
    )
  })

  test.each([
    ['/pass/i', 'it will PASS', 'it fails'],
    ['/^pass$/', 'pass', 'passed'],
    ['/a|b/s', 'b', 'c'],
  ])('H43 the way out of != %s fails where the pattern matches', (not, matched, other) => {
    expect(expectationProblem(`!= ${not}`)).toContain(`write {not: ${not}}`)
    expect(patternMismatch(matched, { not })).toContain('matches')
    expect(patternMismatch(other, { not })).toBeUndefined()
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
