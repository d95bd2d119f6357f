import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readSettings, type Setting, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { describeMismatch } from '../../../src/core/checks/assert/expectation.ts'
import { evaluateAsked } from '../../../src/core/checks/database/queries.ts'
import type { AnyKind, Kind, Result } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { http as page, peer, replies } from '../../support/faults/faults.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const ofKind = async (name: KindName) => (await monitors[name].load()).default as AnyKind as Kind<SettingsSpec>

/** Reads an entry as svc.yaml writes it, and runs it. */
async function run(name: KindName, raw: object, mode: ExecutionMode = 'Standard', options: object = {}) {
  const kind = await ofKind(name)
  const { values, problems } = readSettings(kind.settings, raw, { env: {}, folder: '/' })
  expect([...problems, ...[kind.validate?.(values as never) ?? []].flat()]).toEqual([])
  return await runKind(kind, values, mode, options)
}
const outcome = (results: readonly Result[], check: string): string => {
  const { status, notChecked } = checked(results, check)
  return notChecked === undefined ? status : `not checked (${notChecked})`
}

const long = 'x'.repeat(70_000)
const type = { 'Content-Type': 'application/json' }
const document = JSON.stringify({ status: 'fail', count: 3, errors: [], jobs: [{ state: 'done' }], none: null, long })

type Case = readonly [what: string, answer: string, settings: object, check: string, outcome: string]

/** Answers, whole and in part, and the outcome of a negation. */
const answers: readonly Case[] = [
  ['a text that is not there', page(200, 'all is well'), { contains: { not: 'maintenance' } }, 'content', 'ok'],
  ['a text that is there', page(200, 'in maintenance'), { contains: { not: 'maintenance' } }, 'content', 'failed'],
  ['a pattern that does not match', page(200, 'all is well'), { matches: { not: '/fatal/i' } }, 'content', 'ok'],
  ['a bare pattern that matches', page(200, 'Fatal error'), { matches: { not: '[Ff]atal' } }, 'content', 'failed'],
  ['a header that is missing', page(200, 'ok'), { header: { 'X-Debug': { not: 'present' } } }, 'header', 'ok'],
  [
    'a header that is there',
    page(200, 'ok', { 'X-Debug': '1' }),
    { header: { 'X-Debug': { not: 'present' } } },
    'header',
    'failed',
  ],
  [
    'another value of a header',
    page(200, 'ok', { Mode: 'live' }),
    { header: { mode: { not: '/test/' } } },
    'header',
    'ok',
  ],
  [
    'the value of a header',
    page(200, 'ok', { Mode: 'a test' }),
    { header: { mode: { not: '/test/' } } },
    'header',
    'failed',
  ],
  ['another value', page(200, document, type), { json: { '$.status': { not: 'pass' } } }, 'json', 'ok'],
  ['the value', page(200, document, type), { json: { '$.status': { not: '/^fail/' } } }, 'json', 'failed'],
  ['a comparison', page(200, document, type), { json: { '$.count': { not: '> 5' } } }, 'json', 'ok'],
  ['a comparison that holds', page(200, document, type), { json: { '$.count': { not: '< 5' } } }, 'json', 'failed'],
  ['a comparison with a text', page(200, document, type), { json: { '$.status': { not: '> 5' } } }, 'json', 'failed'],
  ['a value that is missing', page(200, document, type), { json: { '$.state': { not: 'fail' } } }, 'json', 'failed'],
  [
    'a header with another value that is missing',
    page(200, 'ok'),
    { header: { Mode: { not: 'test' } } },
    'header',
    'failed',
  ],
  ['nothing at a path', page(200, document, type), { json: { '$.error': { not: 'present' } } }, 'json', 'ok'],
  ['null at a path', page(200, document, type), { json: { '$.none': { not: 'present' } } }, 'json', 'failed'],
  ['no element of a list', page(200, document, type), { json: { '$.errors[*].code': { not: 'fatal' } } }, 'json', 'ok'],
  [
    'elements without the value',
    page(200, document, type),
    { json: { '$.jobs[*].code': { not: 'fatal' } } },
    'json',
    'failed',
  ],
  ['each element', page(200, document, type), { json: { '$.jobs[*].state': { not: 'failed' } } }, 'json', 'ok'],
  [
    'an XML value',
    page(200, '<a b="1"/>'),
    { xml: { '/a/@b': { not: '2' }, '/a/c': { not: 'present' } } },
    'xml',
    'ok',
  ],
  ['the XML value', page(200, '<a b="1"/>'), { xml: { '/a/@b': { not: '1' } } }, 'xml', 'failed'],
  ['another version', page(200, '{"version":"1.3"}'), { version: { expected: { not: '/^1\\.2/' } } }, 'version', 'ok'],
  ['an empty body', page(200), { contains: { not: 'maintenance' } }, 'empty body', 'warning'],
  [
    'more elements of a list than are examined',
    page(200, JSON.stringify(Array.from({ length: 2_001 }, () => 'a')), type),
    { json: { '$[*]': { not: 'b' } } },
    'json',
    'not checked (missing)',
  ],
  [
    'items that another value selects',
    page(200, document, type),
    { measure: [{ name: 'm', path: '$.jobs[*]', where: { state: { not: 'failed' } }, count: 0 }] },
    'measure',
    'failed',
  ],
  [
    'items without a value',
    page(200, document, type),
    { measure: [{ name: 'm', path: '$.jobs[*]', where: { error: { not: 'present' } }, count: 0 }] },
    'measure',
    'failed',
  ],
  [
    'the content type of a link',
    page(200, '{"next":"/"}', type),
    { links: [{ name: 'l', path: '$.next', type: { not: '/json/' } }] },
    'links',
    'failed',
  ],
  // What was not seen whole.
  [
    'a body that is cut',
    page(200, long),
    { contains: { not: 'error' }, maxBody: '64KiB' },
    'content',
    'not checked (missing)',
  ],
  [
    'the text in the part of a body that was read',
    page(200, `error ${long}`),
    { contains: { not: 'error' }, maxBody: '64KiB' },
    'content',
    'failed',
  ],
  [
    'a body longer than patterns read',
    page(200, long),
    { matches: { not: '/error/' } },
    'content',
    'not checked (missing)',
  ],
  [
    'JSON that is cut',
    page(200, document, type),
    { json: { '$.a': { not: 'b' } }, maxBody: '4KiB' },
    'json',
    'not checked (missing)',
  ],
  [
    'JSON that is cut, and another value of which is expected',
    page(200, document, type),
    { json: { '$.a': { not: 'b' }, '$.count': '3' }, maxBody: '4KiB' },
    'json',
    'failed',
  ],
  [
    'XML that is cut',
    page(200, `<a>${long}</a>`),
    { xml: { '/a/@b': { not: 'c' } }, maxBody: '4KiB' },
    'xml',
    'not checked (missing)',
  ],
  [
    'a value longer than patterns read',
    page(200, document, type),
    { json: { '$.long': { not: '/y/' } } },
    'json',
    'not checked (missing)',
  ],
  [
    'a value longer than patterns read, and another that is wrong',
    page(200, document, type),
    { json: { '$.long': { not: '/y/' }, '$.count': { not: '3' } } },
    'json',
    'failed',
  ],
  [
    'a body in an unknown coding',
    page(200, 'ok', { 'Content-Encoding': 'x-own' }),
    { contains: { not: 'error' } },
    'content',
    'not checked (missing)',
  ],
  [
    'a status that is not accepted',
    page(500, 'sorry'),
    { contains: { not: 'error' } },
    'content',
    'not checked (status)',
  ],
  [
    'a header of such a status',
    page(404, 'no'),
    { header: { 'X-Debug': { not: 'present' } } },
    'header',
    'not checked (status)',
  ],
]

describe('H75 what `not:` says of an answer', () => {
  test.each(answers)('%s', async (_, answer, settings, check, expected) => {
    await using there = await peer(replies(answer))
    const results = await run('http', { url: `http://127.0.0.1:${there.port}/`, ...settings })
    expect(outcome(results, check)).toBe(expected)
  })

  test('H75 an error page that Basic accepts proves no absence', async () => {
    await using there = await peer(replies(page(404, 'no such page')))
    const settings = { url: `http://127.0.0.1:${there.port}/`, judgeFrom: 'Basic', contains: { not: 'error' } }
    const results = await run('http', settings, 'Basic')
    expect([outcome(results, 'status'), outcome(results, 'content')]).toEqual(['ok', 'not checked (missing)'])
  })

  test('H75 a pattern that is given up does not count as one that does not match', async () => {
    await using there = await peer(replies(page(200, `${'a'.repeat(40)}!`)))
    const results = await run('http', { url: `http://127.0.0.1:${there.port}/`, matches: { not: '/^(a+)+(?=b)$/' } })
    expect(checked(results, 'content')).toMatchObject({ status: 'failed' })
    expect(checked(results, 'content').message).toContain('cannot be evaluated')
  })

  test('the message says what is excluded', () => {
    expect(describeMismatch('failed', { not: '/^fail/' })).toBe('is "failed", expected not /^fail/')
    expect(describeMismatch('4', { not: '>= 3' })).toBe('is "4", expected not >= 3')
    expect(describeMismatch('ok', { not: '/^fail/' })).toBeUndefined()
  })
})

describe('H75 what `not:` says of a step', () => {
  const steps = async (body: string, step: object, more: object = {}) => {
    await using there = await peer(replies(page(200, body, type)))
    return await run(
      'http-steps',
      { url: `http://127.0.0.1:${there.port}/`, steps: [{ name: 'one', path: '/', ...step }], ...more },
      'Advanced',
    )
  }
  test.each<readonly [string, string, object, object, string]>([
    ['a text that is not there', '{}', { contains: { not: 'error' } }, {}, 'ok'],
    ['a text that is there', '{"a":"error"}', { contains: { not: 'error' } }, {}, 'failed'],
    ['a value that is missing', '{}', { expect: { '$.error': { not: 'present' } } }, {}, 'ok'],
    ['a value of the run', '{"a":"b"}', { json: { '$.a': { not: `\${old}` } } }, { values: { old: 'b' } }, 'failed'],
    ['a cut body', `"${long}"`, { contains: { not: 'error' } }, { maxBody: '4KiB' }, 'not checked (missing)'],
    [
      'an answer that means a failure',
      '{"a":"b"}',
      { fails: [{ expect: { '$.a': { not: 'c' } }, says: 'x' }] },
      {},
      'failed',
    ],
    [
      'an answer that is cut means none',
      `"${long}"`,
      { fails: [{ expect: { '$.a': { not: 'c' } }, says: 'x' }] },
      { maxBody: '4KiB' },
      'ok',
    ],
    ['the end of polling', '{"a":"done"}', { until: { expect: { '$.a': { not: 'busy' } }, most: 1 } }, {}, 'ok'],
  ])('%s', async (_, body, step, more, expected) => {
    expect(outcome(await steps(body, step, more), 'step')).toBe(expected)
  })
})

test.each([
  ['another value', ['1'], {}, { not: '2' }, 'ok'],
  ['the value', ['good', 'bad'], {}, { not: '/bad/' }, 'failed'],
  ['more rows than are read', ['good'], { more: true }, { not: 'bad' }, 'not checked (missing)'],
  ['rows that are not kept', ['good'], { retained: 1, rows: 2 }, { not: 'bad' }, 'not checked (missing)'],
  ['a value that is cut', ['good'], { cut: true }, { not: '/bad/' }, 'not checked (missing)'],
  ['the value in the rows that are read', ['bad'], { more: true }, { not: 'bad' }, 'failed'],
] as const)('H75 what `not:` says of a query: %s', (_, cells, part, expected, result) => {
  const column = { cells, rows: cells.length, retained: cells.length, more: false, cut: false, ...part }
  const query = { name: 'q', sql: 'SELECT state FROM jobs', depth: 'Standard', expect: expected } as const
  expect(outcome(evaluateAsked({ query, at: 0, column }), 'queries')).toBe(result)
})

describe('H75 what `not:` says of the output of a program', () => {
  test.each<readonly [string, string, string | { readonly not: string }, string]>([
    ['a text', 'echo running', 'running', 'ok'],
    ['a pattern', 'echo running', '/^running/', 'ok'],
    ['another text', 'echo degraded; exit 1', '/^running/', 'failed'],
    ['a text that is not there', 'echo fine', { not: 'ERROR' }, 'ok'],
    ['a text that is there', 'echo ERROR', { not: '/^err/i' }, 'failed'],
    ['the text in a program that warns', 'echo ERROR; exit 1', { not: 'ERROR' }, 'failed'],
    ['a program that failed', 'echo cannot connect; exit 2', { not: 'ERROR' }, 'not checked (status)'],
    ['a program that was ended', 'kill -9 $$', { not: 'ERROR' }, 'not checked (status)'],
    ['output that is cut', 'head -c 100000 /dev/zero | tr "\\0" x', { not: 'ERROR' }, 'not checked (missing)'],
  ])('%s', async (_, body, expected, result) => {
    const allowed = join(temporaryFolder(), 'plugins')
    mkdirSync(allowed, { mode: 0o755 })
    const command = join(allowed, 'check_it')
    writeFileSync(command, `#!/bin/sh\n${body}\n`)
    chmodSync(command, 0o755)
    const services = { exec: { allow: [allowed] } }
    expect(outcome(await run('exec', { command, expect: expected }, 'Basic', { services }), 'output')).toBe(result)
  })
})

/** Every setting of a kind, those of groups too. */
const allSettings = (spec: SettingsSpec, path: string): readonly (readonly [string, Setting])[] =>
  Object.entries(spec).flatMap(([name, setting]) => [
    [`${path} ${name}`, setting] as const,
    ...('fields' in setting ? allSettings(setting.fields, `${path} ${name}`) : []),
  ])

/** The answer of a TCP server has no end at which one would know what it lacks. */
const endless: readonly string[] = ['tcp expect', 'tcp dialogue expect', 'tls expect', 'tls dialogue expect']

test('H75 each setting that is an expectation may be a negation', async () => {
  const all = await Promise.all(
    (Object.keys(monitors) as KindName[]).map(async (name) => allSettings((await ofKind(name)).settings, name)),
  )
  const expectations = all
    .flat()
    .filter(
      ([, { type, doc }]) =>
        (type === 'text' || type === 'map') && /\/pattern\/|[Vv]alues expected|must (?:contain|match)/.test(doc),
    )
  const lacking = expectations.filter(([, setting]) => !('negatable' in setting)).map(([path]) => path)
  expect(expectations.length).toBeGreaterThan(15)
  expect(lacking).toEqual(endless)
})

test.each([
  [{ contains: { not: 'a', or: 'b' } }, 'must be text, or {not: text}'],
  [{ contains: { is: 'a' } }, 'must be text, or {not: text}'],
  [{ contains: { not: ['a'] } }, 'must be text, not a list'],
  [{ json: { '$.a': { not: { not: 'b' } } } }, 'must be text, not a map'],
  [{ matches: { not: 'fail(ed' } }, 'matches: fail(ed is not a regular expression'],
  [{ json: { '$.a': { not: '> x' } } }, '> x is not a comparison with a number'],
])('a negation that says nothing is refused: %j', async (settings, message) => {
  const { settings: spec, validate } = await ofKind('http')
  const read = readSettings(spec, { url: 'http://127.0.0.1/', ...settings }, { env: {}, folder: '/' })
  const problem = read.problems[0]?.message ?? validate?.(read.values as never)
  expect(problem).toContain(message)
})
