import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { formatNamed, jsonp, jsonpContentType, negotiate } from '../../../src/core/protocol/wire/index.ts'
import { faultOf } from './samples.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

test.each([
  [{}, 'json'],
  [{ accept: '*/*' }, 'json'],
  [{ accept: 'application/pdf' }, 'json'],
  [{ accept: browser }, 'json'],
  [{ accept: 'application/json, text/plain, */*' }, 'json'],
  [{ accept: 'text/csv' }, 'csv'],
  [{ accept: 'TEXT/CSV; charset=utf-8' }, 'csv'],
  [{ accept: 'text/csv, */*' }, 'csv'],
  [{ accept: 'text/*' }, 'csv'],
  [{ accept: 'application/*' }, 'json'],
  [{ accept: 'application/jsv' }, 'jsv'],
  [{ accept: 'text/jsv;charset=utf-8' }, 'jsv'],
  [{ accept: 'application/jsv, */*' }, 'jsv'],
  [{ accept: 'text/csv;q=0.5, text/jsv, application/json;q=0.9' }, 'jsv'],
  [{ accept: 'application/json, application/jsv' }, 'json'],
  [{ format: 'JSV', accept: 'text/csv' }, 'jsv'],
  [{ suffix: 'jsv', callback: 'cb', format: 'json' }, 'jsv'],
  [{ accept: 'application/xml, text/html' }, 'json'],
  [{ accept: 'text/xml, */*;q=0.1' }, 'json'],
  [{ accept: 'application/xml;q=0' }, 'json'],
  [{ accept: 'text/xml, application/jsv;q=0.1' }, 'jsv'],
  [{ accept: 'application/xml', format: 'json' }, 'json'],
  [{ accept: 'application/xml', suffix: 'csv' }, 'csv'],
  [{ format: 'xml' }, 'json'],
  [{ accept: 'application/json, text/csv' }, 'json'],
  [{ accept: 'text/csv, application/json' }, 'csv'],
  [{ accept: 'text/csv;q=0.5, application/json;q=0.9' }, 'json'],
  [{ accept: 'application/json;q=0.1, text/csv;q=0.2' }, 'csv'],
  [{ accept: 'text/csv;q=0, */*' }, 'json'],
  [{ accept: 'application/json;q=0' }, 'json'],
  [{ accept: 'text/csv;q=often' }, 'json'],
  [{ accept: ',;,=";q' }, 'json'],
  [{ format: 'csv' }, 'csv'],
  [{ format: 'CSV', accept: 'application/json' }, 'csv'],
  [{ format: 'json', accept: 'text/csv' }, 'json'],
  [{ format: 'zzz' }, 'json'],
  [{ format: 'zzz', accept: 'text/csv' }, 'csv'],
  [{ format: 'constructor' }, 'json'],
  [{ format: '' }, 'json'],
  [{ suffix: 'csv', format: 'json', accept: 'application/json' }, 'csv'],
  [{ suffix: 'json', format: 'csv', accept: 'text/csv' }, 'json'],
  [{ callback: '' }, 'json'],
  [{ callback: '', format: 'csv' }, 'csv'],
  [{ suffix: 'csv', callback: 'cb' }, 'csv'],
  [{ suffix: 'csv', callback: 'not a name' }, 'csv'],
] as const)('F1 %j is answered in %s', (expected, format) => {
  expect(negotiate({ method: 'GET', ...expected })).toEqual({ format, names: 'PascalCase' })
})

test.each([
  'application/xml',
  'text/xml',
  'APPLICATION/XML; charset=utf-8',
  'application/xml, text/xml;q=0.5',
  'application/xml, application/json;q=0',
  ',text/xml,',
])('F1 a request that accepts only %s is a 406 that names the formats', (accept) => {
  const fault = faultOf(() => negotiate({ method: 'GET', accept, format: 'xml' }))
  expect(fault).toMatchObject({ status: 406, errorCode: 'NotAcceptable' })
  for (const type of ['application/json', 'application/jsv', 'text/csv']) expect(fault.message).toContain(type)
})

test.each([
  { callback: 'cb' },
  { callback: 'cb', format: 'csv' },
  { callback: 'cb', accept: 'text/csv' },
  { callback: 'cb', suffix: 'json' },
] as const)('F1 the callback of %j wraps JSON', (expected) => {
  expect(negotiate({ method: 'GET', ...expected })).toEqual({ format: 'json', callback: 'cb', names: 'PascalCase' })
  expect(negotiate({ method: 'HEAD', ...expected })).toEqual({ format: 'json', callback: 'cb', names: 'PascalCase' })
})

test('F1 a callback is ignored on other methods', () => {
  expect(negotiate({ method: 'POST', callback: 'cb' })).toEqual({ format: 'json', names: 'PascalCase' })
  expect(negotiate({ method: 'DELETE', callback: 'alert(1)', format: 'csv' })).toEqual({
    format: 'csv',
    names: 'PascalCase',
  })
})

test('F1 a suffix that names no format is left to the router', () => {
  expect(['json', 'CSV', 'Json', 'jSv'].map(formatNamed)).toEqual(['json', 'csv', 'json', 'jsv'])
  expect(['pdf', '', 'xml', 'json ', 'constructor'].map(formatNamed)).toEqual(Array(5).fill(undefined))
})

test.each(['cb', 'a.b_1', '$', '_x.$y', `${'a'.repeat(50)}.${'b'.repeat(50)}`])(
  'F2 the callback %s is accepted',
  (callback) => {
    expect(negotiate({ method: 'GET', callback }).callback).toBe(callback)
  },
)

test.each([
  'alert(1)//',
  'a b',
  '1a',
  'a..b',
  '.a',
  'a.',
  'a-b',
  'a[0]',
  'é',
  'a'.repeat(51),
  'a\n',
  '<script>',
  'a.1',
])('F2 the callback %j is a 400', (callback) => {
  const fault = faultOf(() => negotiate({ method: 'GET', callback }))
  expect(fault).toMatchObject({ status: 400, errorCode: 'BadRequest' })
  expect(fault.message).not.toContain(callback)
})

test('F2 JSONP is a call without a semicolon, and one line to any JavaScript', () => {
  expect(jsonpContentType).toBe('text/javascript; charset=utf-8')
  expect(jsonp('cb', '{"a":1}')).toBe('cb({"a":1})')
  const json = JSON.stringify({ a: 'x\u2028y\u2029z</script>' })
  expect(jsonp('cb', json)).not.toMatch(/[\u2028\u2029]/)
  expect(runInNewContext(jsonp('cb', json), { cb: (answer: unknown) => JSON.stringify(answer) })).toBe(json)
})
