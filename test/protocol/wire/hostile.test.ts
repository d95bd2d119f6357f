import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { AssignRoles, type Dto, HealthCheckResponse } from '../../../src/core/protocol/index.ts'
import { bind, decodeAnswer, formats, parsePairs, readBody } from '../../../src/core/protocol/wire/index.ts'
import { codePoints } from '../../support/suite/code-points.ts'
import { runsOf } from '../../support/suite/runs.ts'
import { isQuick } from '../../support/suite/tier.ts'
import { dtos } from './arbitrary.ts'

const json = await formats.json()
const csv = await formats.csv()
/** A reader that is slower than linear would take minutes over this, and seconds over the part of the quick tier. */
const size = isQuick() ? 1 << 15 : 1 << 17
const boundary = 'multipart/form-data; boundary=b'
const part = '--b\r\nContent-Disposition: form-data; name="UserName"\r\n\r\n'

/** Each reader of input from an anonymous caller: it must return a DTO or a fault, and nothing else. */
const read = async (schema: Dto, body: string): Promise<void> => {
  const readers: readonly (() => unknown)[] = [
    () => json.decode(schema, body),
    () => csv.decode(schema, body),
    () => csv.decode(schema, `Roles,MonitorSummaries\n${body}`),
    () => csv.decode(schema, `Roles\n"${body.replaceAll('"', '""')}"`),
    () => csv.decode(schema, `MonitorSummaries\n"${body.replaceAll('"', '""')}"`),
    () => decodeAnswer(schema, body),
    () => bind(schema, parsePairs(body)),
    () =>
      bind(schema, [
        ['Roles', body],
        ['Meta', body],
        ['UserName', body],
        ['ServerType', body],
      ]),
    () => readBody(schema, boundary, Buffer.from(body)),
    () => readBody(schema, 'application/x-www-form-urlencoded', Buffer.from(body)),
    () => readBody(schema, body.slice(0, 8000), Buffer.from('x')),
  ]
  for (const reader of readers) {
    try {
      await reader()
    } catch (error) {
      expect(error).toBeInstanceOf(Fault)
      const { message, details, status } = error as Fault
      expect([400, 415, 502]).toContain(status)
      // The message is short, however long the request is.
      expect(message.length + JSON.stringify(details.fields ?? []).length).toBeLessThan(4000)
    }
  }
}

test.each([
  ['brackets', '['.repeat(size)],
  ['braces', '{'.repeat(size)],
  ['balanced brackets', '['.repeat(size / 2) + ']'.repeat(size / 2)],
  ['nested objects', `${'{"Roles":'.repeat(size / 20)}1${'}'.repeat(size / 20)}`],
  ['nested JSV', `[${'{x:'.repeat(size / 8)}${'}'.repeat(size / 8)}]`],
  ['quotes', '"'.repeat(size)],
  ['an odd number of quotes', '"'.repeat(size - 1)],
  ['quotes after blanks', ' "'.repeat(size / 2)],
  ['an open list of quotes', `[${'"",'.repeat(size / 4)}`],
  ['backslashes', `"${'\\'.repeat(size)}`],
  ['blanks', ' '.repeat(size)],
  ['commas', ','.repeat(size)],
  ['colons', `{${':'.repeat(size)}`],
  ['line ends', '\r\n'.repeat(size / 2)],
  ['returns', '\r'.repeat(size)],
  ['ampersands', '&'.repeat(size)],
  ['equals', '='.repeat(size)],
  ['percents', '%'.repeat(size)],
  ['zeros', '0'.repeat(size)],
  ['semicolons', `multipart/form-data${';'.repeat(size)}`],
  ['a long name', `{"${'x'.repeat(size)}":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1`],
  ['a long wrong value', `{"Status":"${'x'.repeat(size)}"}`],
  ['a long list', `{"Roles":[${'"a",'.repeat(size / 4)}"a"]}`],
  ['a long list of wrong items', `{"Roles":[${'1,'.repeat(size / 2)}1]}`],
  ['wrong items in items', `{"MonitorSummaries":[${'{"Status":0},'.repeat(size / 13)}{}]}`],
  ['one name again and again', `{${'"UserName":"a",'.repeat(size / 16)}"UserName":"b"}`],
  ['one name in two cases', `{${'"UserName":"a","username":1,'.repeat(size / 30)}"USERNAME":"b"}`],
  ['many names', `{${Array.from({ length: size / 16 }, (_, index) => `"k${index}":0`).join(',')}}`],
  ['prototype keys', '{"__proto__":{"UserName":"x"},"constructor":{"prototype":{"polluted":1}}}'],
  ['prototype keys in JSV', '{__proto__:x,constructor:y}'],
  ['prototype names', '__proto__=x&constructor=y&toString=z&Meta={__proto__:x}'],
  ['NaN', `[${'NaN,'.repeat(size / 4)}`],
  ['quotes before NaN', `${'"a'.repeat(size / 2)}NaN`],
  ['parts', `${part}\r\n`.repeat(size / 64)],
  ['boundaries', '--b\r\n'.repeat(size / 5)],
  ['almost boundaries', `${part}${'\r\n--'.repeat(size / 4)}`],
  ['a form with many fields', 'UserName=a&'.repeat(size / 11)],
  ['astral characters', '😀'.repeat(size / 4)],
  ['half characters', '\ud800'.repeat(size / 4)],
  ['text', 'x'.repeat(8 * size)],
  ['text in a field', `{"UserName":"${'x'.repeat(8 * size)}"}`],
])('S4 a large amount of %s becomes a DTO or a short fault', async (_what, body) => {
  await read(AssignRoles, body)
  await read(HealthCheckResponse, body)
  expect({}).not.toHaveProperty('polluted')
  expect({}).not.toHaveProperty('UserName')
})

test('S4 any input becomes a DTO or a short fault', async () => {
  const pieces = fc.constantFrom(
    ...['{', '}', '[', ']', '"', ':', ',', '\\', '\r\n', '&', '=', '%', '+', ' ', 'null', '1', 'a', '\\u005f', '--b'],
    ...['Roles', 'Meta', 'UserName', 'Status', 'MonitorSummaries', '"Roles":', '"Meta":{', '__proto__', 'NaN'],
  )
  const body = fc.oneof(
    fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
    fc.json(),
    fc.string({ unit: codePoints }),
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...dtos), body, (schema, text) => read(schema, text)),
    { numRuns: runsOf(500) },
  )
})

test('the wire module loads no CSV package before the first CSV', () => {
  const script = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ resolve: (specifier, context, next) => { loaded.push(specifier); return next(specifier, context) } })
    const { formats } = await import('./src/core/protocol/wire/index.ts')
    await formats.json()
    const before = loaded.filter((name) => !name.startsWith('.'))
    await formats.csv()
    console.log(JSON.stringify({ before, after: loaded.filter((name) => /^csv-/.test(name)) }))`
  const root = new URL('../../..', import.meta.url)
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root, encoding: 'utf8' })
  expect(JSON.parse(stdout)).toEqual({ before: [], after: ['csv-parse/sync', 'csv-stringify/sync'] })
})
